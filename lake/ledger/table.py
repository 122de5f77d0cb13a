"""The ledger's only DynamoDB table: conditional writes, consistent reads and queries, never a Scan."""

import random
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import islice
from typing import Any, Literal, TypeVar

from botocore.exceptions import ClientError

from lake.aws_types import DynamoDBClient
from lake.faults import CANCELLED, CONDITION_REASONS, CONFLICT_CODE, Fault, cancellation_reasons, error_code, judge
from lake.texts import format_count

OPEN_INDEX = "open"
"""Global secondary index of rows that are open or did not get through: only these have the index's attributes."""
INDEX_WAIT_SECONDS = 5
"""Wait before a read of the index whose gaps would matter, so that it can catch up.

It usually lags by less than a second, but AWS promises no bound (Amazon DynamoDB Developer Guide, "Using global
secondary indexes").
"""
MAX_TRANSACTION_ACTIONS = 100
"""DynamoDB's limit on the actions of one TransactWriteItems (its "Service quotas")."""
MAX_PARTITION_KEY_BYTES = 2048
MAX_SORT_KEY_BYTES = 1024
"""DynamoDB's limits on keys (its "Service quotas")."""


@dataclass(frozen=True, slots=True)
class Key:
    pk: str
    sk: str

    def item(self) -> dict[str, str]:
        return {"pk": self.pk, "sk": self.sk}

    @property
    def is_valid(self) -> bool:
        """Whether an item can have this key: names that people pass may be empty or too long."""
        partition, sort = (len(text.encode("utf-8", "surrogatepass")) for text in (self.pk, self.sk))
        return 0 < partition <= MAX_PARTITION_KEY_BYTES and 0 < sort <= MAX_SORT_KEY_BYTES


@dataclass(frozen=True, slots=True)
class Condition:
    """One comparison of a condition expression. A write requires all of its conditions."""

    attribute: str
    operator: Literal["=", ">", "<", "missing", "size"]
    """``missing``: the item lacks the attribute. ``size``: it has this number of elements. All operators but
    ``missing`` need the attribute."""
    value: Any = None


Action = dict[Literal["Put", "Update"], dict[str, Any]]
"""An action of a transaction, without the name of the table."""


def same(**attributes: object) -> list[Condition]:
    """Conditions that each attribute still has this value; None: that it is still missing."""
    return [Condition(name, "missing" if value is None else "=", value) for name, value in attributes.items()]


NEW = (Condition("pk", "missing"),)
"""The condition of an item that is written for the first time."""


class LedgerTable:
    """Typed access to the table; thread-safe. All methods raise botocore's errors.

    A write returns False if one of its conditions did not hold: read the item to learn why. A write that met a
    transaction on the same item is repeated a limited number of times. ``client`` is the ``meta.client`` of a boto3
    DynamoDB *resource*, which takes and returns plain Python values. ``wait`` sleeps for a number of seconds before
    such a repetition.
    """

    def __init__(self, client: DynamoDBClient, name: str, wait: Callable[[float], object] = time.sleep) -> None:
        self._client = client
        self._wait = wait
        self.name = name

    def get(self, key: Key) -> dict[str, Any] | None:
        """The item by a strongly consistent read; None if it does not exist."""
        if not key.is_valid:
            return None
        answer = self._client.get_item(TableName=self.name, Key=key.item(), ConsistentRead=True)
        item = answer.get("Item")
        return None if item is None else _plain(item)

    def get_many(self, keys: Sequence[Key]) -> list[dict[str, Any] | None]:
        """The items of at most ``MAX_BATCH_KEYS`` different keys, in their order, by strongly consistent reads.

        DynamoDB leaves keys unprocessed if the answer would exceed 16 MB or the table lacks capacity; they are
        requested again. Raises ``ClientError``, with DynamoDB's code for a throttled table, after ``MAX_TRIES``
        requests in succession in which none of the remaining keys was processed.
        """
        found: dict[tuple[str, str], dict[str, Any]] = {}
        remaining, tries = [key.item() for key in keys], 0
        while remaining:
            request: Any = {self.name: {"Keys": remaining, "ConsistentRead": True}}
            answer = self._client.batch_get_item(RequestItems=request)
            found |= {(item["pk"], item["sk"]): item for item in map(_plain, answer["Responses"].get(self.name, []))}
            unprocessed: Any = answer.get("UnprocessedKeys", {})
            asked, remaining = len(remaining), unprocessed[self.name]["Keys"] if self.name in unprocessed else []
            tries = 0 if len(remaining) < asked else tries + 1
            if tries == MAX_TRIES:
                rows = format_count(len(remaining), "row")
                message = f"none of {rows} of table {self.name} was read in {MAX_TRIES} tries"
                answer_of_none: Any = {"Error": {"Code": "ProvisionedThroughputExceededException", "Message": message}}
                raise ClientError(answer_of_none, "BatchGetItem")
            if remaining:
                self._wait(wait_seconds(tries))
        return [found.get((key.pk, key.sk)) for key in keys]

    def put(self, key: Key, attributes: Mapping[str, Any], conditions: Sequence[Condition] = NEW) -> bool:
        """Put an item, by default only a new one, without the attributes that are None."""
        return self._write("put_item", put_action(key, attributes, conditions)["Put"])

    def update(
        self,
        key: Key,
        *,
        assign: Mapping[str, Any] | None = None,
        add: Mapping[str, Any] | None = None,
        remove: Sequence[str] = (),
        conditions: Sequence[Condition] = (),
        initial: Mapping[str, Any] | None = None,
    ) -> bool:
        """Change or create an item; ``add``: numbers, sets; ``initial``: only if missing."""
        return self._write("update_item", update_action(key, assign, add, remove, conditions, initial)["Update"])

    def update_once(
        self, key: Key, assign: Mapping[str, Any], remove: Sequence[str], conditions: Sequence[Condition]
    ) -> bool:
        """``update``; also True if an earlier try without an answer has written this."""
        if self.update(key, assign=assign, remove=remove, conditions=conditions):
            return True
        item = self.get(key) or {}
        return {name: item.get(name) for name in assign} == assign

    def delete(self, key: Key, conditions: Sequence[Condition] = ()) -> bool:
        """Delete an item if it exists."""
        return self._write("delete_item", _Expressions().request(conditions, Key=key.item()))

    def transact(self, actions: Sequence[Action]) -> bool:
        """Apply all actions, made by ``put_action`` and ``update_action``, or none."""
        items: Any = [{kind: {"TableName": self.name, **each[kind]} for kind in each} for each in actions]
        try:
            repeat_conflicts(lambda: self._client.transact_write_items(TransactItems=items), self._wait)
        except ClientError as error:
            if error_code(error) == CANCELLED and cancellation_reasons(error) <= CONDITION_REASONS:
                return False
            raise
        return True

    def query(
        self, pk: str, *, after: str = "", before: str = "", index: bool = False, page_items: int = 0
    ) -> Iterator[dict[str, Any]]:
        """Items of one partition key in sort order, page by page.

        The base table is read consistently. ``index`` reads ``OPEN_INDEX``, which is eventually consistent: a hint.
        ``after`` and ``before`` bound the sort key, inclusive; set both or none.
        ``page_items`` is the maximum number of items of a request; 0 stands for up to 1 MB.
        """
        names = {"#p": "open" if index else "pk"}
        values: dict[str, Any] = {":p": pk}
        condition = "#p = :p"
        if after or before:
            names["#s"] = "open_order" if index else "sk"
            values |= {":a": after, ":b": before}
            condition += " AND #s BETWEEN :a AND :b"
        request: dict[str, Any] = {
            "TableName": self.name,
            "KeyConditionExpression": condition,
            "ExpressionAttributeNames": names,
            "ExpressionAttributeValues": values,
        }
        if index:
            request["IndexName"] = OPEN_INDEX
        else:
            request["ConsistentRead"] = True
        if page_items:
            request["Limit"] = page_items
        while True:
            page = self._client.query(**request)
            yield from (_plain(item) for item in page["Items"])
            if "LastEvaluatedKey" not in page:
                return
            request["ExclusiveStartKey"] = page["LastEvaluatedKey"]

    def _write(self, operation: str, request: dict[str, Any]) -> bool:
        try:
            repeat_conflicts(lambda: getattr(self._client, operation)(TableName=self.name, **request), self._wait)
        except ClientError as error:
            if error_code(error) == "ConditionalCheckFailedException":
                return False
            raise
        return True


class Rows:
    def __init__(self, table: LedgerTable) -> None:
        self._table = table


def put_action(key: Key, attributes: Mapping[str, Any], conditions: Sequence[Condition] = NEW) -> Action:
    """``LedgerTable.put`` as an action."""
    item = {**key.item(), **{name: value for name, value in attributes.items() if value is not None}}
    return {"Put": _Expressions().request(conditions, Item=item)}


def update_action(
    key: Key,
    assign: Mapping[str, Any] | None = None,
    add: Mapping[str, Any] | None = None,
    remove: Sequence[str] = (),
    conditions: Sequence[Condition] = (),
    initial: Mapping[str, Any] | None = None,
) -> Action:
    """``LedgerTable.update`` as an action."""
    used, clauses = _Expressions(), []
    sets = [f"{used.name(a)} = {used.value(v)}" for a, v in (assign or {}).items()]
    sets += [f"{used.name(a)} = if_not_exists({used.name(a)},{used.value(v)})" for a, v in (initial or {}).items()]
    if sets:
        clauses.append("SET " + ", ".join(sets))
    if add:
        clauses.append("ADD " + ", ".join(f"{used.name(a)} {used.value(v)}" for a, v in add.items()))
    if remove:
        clauses.append("REMOVE " + ", ".join(map(used.name, remove)))
    return {"Update": used.request(conditions, Key=key.item(), UpdateExpression=" ".join(clauses))}


class _Expressions:
    """Builds the expressions of one request, with a placeholder for each name and value."""

    __slots__ = ("_names", "_values")

    def __init__(self) -> None:
        self._names: dict[str, str] = {}
        self._values: dict[str, Any] = {}

    def name(self, attribute: str) -> str:
        placeholder = f"#{attribute}"
        self._names[placeholder] = attribute
        return placeholder

    def value(self, value: object) -> str:
        placeholder = f":v{len(self._values)}"
        self._values[placeholder] = value
        return placeholder

    def request(self, conditions: Sequence[Condition], **parameters: Any) -> dict[str, Any]:  # noqa: ANN401
        if conditions:
            parameters["ConditionExpression"] = " AND ".join(map(self._term, conditions))
        if self._names:
            parameters["ExpressionAttributeNames"] = self._names
        if self._values:
            parameters["ExpressionAttributeValues"] = self._values
        return parameters

    def _term(self, condition: Condition) -> str:
        name = self.name(condition.attribute)
        if condition.operator == "missing":
            return f"attribute_not_exists({name})"
        if condition.operator == "size":
            return f"size({name}) = {self.value(condition.value)}"
        return f"{name} {condition.operator} {self.value(condition.value)}"


def _plain(value: Any) -> Any:  # noqa: ANN401
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_plain(item) for item in value]
    return value


K = TypeVar("K")

MAX_BATCH_KEYS = 100
"""DynamoDB's limit on the keys of one BatchGetItem (its "Service quotas")."""


def batches_of(keys: Iterable[K], size: int = MAX_BATCH_KEYS) -> Iterator[list[K]]:
    """The keys in lists of at most ``size``, in order; only one list is in memory."""
    waiting = iter(keys)
    while batch := list(islice(waiting, size)):
        yield batch


T = TypeVar("T")

MAX_TRIES = 8
FIRST_WAIT_SECONDS = 0.05
MAX_WAIT_SECONDS = 2.0
"""A transaction of 100 items takes well below a second. All waits together take at most 6 seconds."""


def repeat_conflicts(write: Callable[[], T], wait: Callable[[float], object]) -> T:
    """Call ``write``, and repeat it after each conflict, at most ``MAX_TRIES`` times in all; returns its result.

    The clients repeat throttled requests, but not cancelled transactions or requests that met a transaction. Raises
    ``ClientError``: the error of the last try, or any other error at once.
    """
    for number in range(MAX_TRIES - 1):
        try:
            return write()
        except ClientError as error:
            if error_code(error) not in (CANCELLED, CONFLICT_CODE) or judge(error) != Fault.ENVIRONMENT:
                raise
        # Random: writers that met each other would otherwise meet again.
        wait(wait_seconds(number))
    return write()


def wait_seconds(tries: int) -> float:
    return min(FIRST_WAIT_SECONDS * (1 << tries), MAX_WAIT_SECONDS) * random.uniform(0.5, 1)  # noqa: S311
