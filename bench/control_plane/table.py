"""A DynamoDB table in memory: the service's own JSON, pages, limits and unprocessed keys."""

import bisect
import json
import re
import time
from collections import Counter, defaultdict
from collections.abc import Mapping
from typing import Any

Item = dict[str, Any]
MAX_PAGE_BYTES = 1 << 20
"""Maximum size of the answer to a query, and ..."""
MAX_BATCH_BYTES = 16 << 20
"""... of the items of one BatchGetItem; what exceeds it is unprocessed (DynamoDB's "Service quotas")."""
MAX_BATCH_KEYS = 100
MAX_ACTIONS = 100
UNPROCESSED_EVERY = 20
"""One batch in this number leaves its last tenth unprocessed, as a busy table does."""
CONDITION = re.compile(
    r"(?:attribute_not_exists\((?P<missing>#\w+)\)|size\((?P<sized>#\w+)\) = (?P<size>:\w+)|"
    r"(?P<name>#\w+) (?P<operator>[=<>]) (?P<value>:\w+))"
)
CLAUSE = re.compile(r"(SET|ADD|REMOVE) ")


class RefusedRequestError(Exception):
    """A request that the service refuses: its code and further fields of the answer."""

    def __init__(self, code: str, **fields: object) -> None:
        super().__init__(code)
        self.code, self.fields = code, fields


class Table:
    """One table with the index ``open``; ``index_writes`` counts its writes by partition key and second."""

    def __init__(self) -> None:
        self._items: dict[tuple[str, str], Item] = {}
        self._sizes: dict[tuple[str, str], int] = {}
        self._sorted: defaultdict[str, list[str]] = defaultdict(list)
        self._index: defaultdict[str, list[tuple[str, str, str]]] = defaultdict(list)
        self._batches = 0
        self._operations = {
            "GetItem": self._get_item,
            "BatchGetItem": self._batch_get_item,
            "PutItem": self._put_item,
            "UpdateItem": self._update_item,
            "TransactWriteItems": self._transact_write_items,
            "Query": self._query,
        }
        self.index_writes: Counter[tuple[str, int]] = Counter()

    def load(self, item: Mapping[str, Any]) -> None:
        self._store(dict(item))
        self.index_writes.clear()

    def finish(self, hour: str, changes: Mapping[str, Any]) -> None:
        """Change the rows of the manifests whose partition ends with ``hour``, which leave the index."""
        rows = [item for (_, sk), item in self._items.items() if sk == "manifest" and "partition" in item]
        for row in rows:
            if row["partition"]["S"].endswith(hour):
                self._store({**{name: row[name] for name in row if name not in ("open", "open_order")}, **changes})
        self.index_writes.clear()

    def answer(self, operation: str, request: Item) -> Item:
        """The answer to one request; raises ``RefusedRequestError``."""
        return self._operations[operation](request)

    def _get_item(self, request: Item) -> Item:
        item = self._items.get(_key(request["Key"]))
        return {} if item is None else {"Item": item}

    def _batch_get_item(self, request: Item) -> Item:
        ((table, asked),) = request["RequestItems"].items()
        keys = asked["Keys"]
        if len(keys) > MAX_BATCH_KEYS or len({_key(key) for key in keys}) < len(keys):
            raise RefusedRequestError("ValidationException", message="too many keys, or one twice")
        self._batches += 1
        processed = len(keys)
        if self._batches % UNPROCESSED_EVERY == 0:
            processed -= len(keys) // 10
        found, size = [], 0
        for number, key in enumerate(keys[:processed]):
            item = self._items.get(_key(key))
            size += self._sizes.get(_key(key), 0)
            if size > MAX_BATCH_BYTES:
                processed = number
                break
            if item is not None:
                found.append(item)
        rest = {**asked, "Keys": keys[processed:]}
        return {"Responses": {table: found}, "UnprocessedKeys": {table: rest} if rest["Keys"] else {}}

    def _put_item(self, request: Item) -> Item:
        self._check(request["Item"], request)
        self._store(request["Item"])
        return {}

    def _update_item(self, request: Item) -> Item:
        self._check(request["Key"], request)
        self._update(request)
        return {}

    def _transact_write_items(self, request: Item) -> Item:
        actions = [next(iter(action.items())) for action in request["TransactItems"]]
        if len(actions) > MAX_ACTIONS:
            raise RefusedRequestError("ValidationException", message="too many actions")
        held = [self._holds(item["Item" if kind == "Put" else "Key"], item) for kind, item in actions]
        if not all(held):
            reasons = [{"Code": "None" if holds else "ConditionalCheckFailed"} for holds in held]
            raise RefusedRequestError("TransactionCanceledException", CancellationReasons=reasons)
        for kind, item in actions:
            self._store(item["Item"]) if kind == "Put" else self._update(item)
        return {}

    def _query(self, request: Item) -> Item:
        names, values = request["ExpressionAttributeNames"], request["ExpressionAttributeValues"]
        pk = values[":p"]["S"]
        low, high = values.get(":a", {"S": ""})["S"], values.get(":b", {"S": chr(0x10FFFF)})["S"]
        keys: list[Any]
        if names["#p"] == "open":
            keys, start = self._index[pk], bisect.bisect_left(self._index[pk], (low, "", ""))
            if after := request.get("ExclusiveStartKey"):
                start = bisect.bisect_right(keys, (after["open_order"]["S"], *_key(after)))
        else:
            keys, start = self._sorted[pk], bisect.bisect_left(self._sorted[pk], low)
            if after := request.get("ExclusiveStartKey"):
                start = bisect.bisect_right(keys, after["sk"]["S"])
        found: list[Item] = []
        size = 0
        for key in keys[start:]:
            item_key = key[1:] if isinstance(key, tuple) else (pk, key)
            item = self._items[item_key]
            if (key[0] if isinstance(key, tuple) else key) > high:
                break
            size += self._sizes[item_key]
            if size > MAX_PAGE_BYTES:
                last = {name: found[-1][name] for name in ("pk", "sk", "open", "open_order") if name in found[-1]}
                return {"Items": found, "Count": len(found), "LastEvaluatedKey": last}
            found.append(item)
        return {"Items": found, "Count": len(found)}

    def _check(self, key: Item, request: Item) -> None:
        if not self._holds(key, request):
            raise RefusedRequestError("ConditionalCheckFailedException")

    def _holds(self, key: Item, request: Item) -> bool:
        if "ConditionExpression" not in request:
            return True
        item = self._items.get(_key(key), {})
        names, values = request.get("ExpressionAttributeNames", {}), request.get("ExpressionAttributeValues", {})
        return all(_term_holds(term, item, names, values) for term in request["ConditionExpression"].split(" AND "))

    def _update(self, request: Item) -> None:
        names, values = request.get("ExpressionAttributeNames", {}), request.get("ExpressionAttributeValues", {})
        item: Item = {**self._items.get(_key(request["Key"]), {}), **request["Key"]}
        parts = CLAUSE.split(request["UpdateExpression"])[1:]
        for kind, text in zip(parts[::2], parts[1::2], strict=True):
            for term in text.strip().split(", "):
                if kind == "REMOVE":
                    item.pop(names[term], None)
                elif kind == "SET":
                    name, value = term.split(" = ")
                    item[names[name]] = values[value]
                else:
                    name, value = term.split(" ")
                    item[names[name]] = _sum(item.get(names[name]), values[value])
        self._store(item)

    def _store(self, item: Item) -> None:
        pk, sk = _key(item)
        before = self._items.get((pk, sk))
        if before is None:
            bisect.insort(self._sorted[pk], sk)
        self._items[pk, sk], self._sizes[pk, sk] = item, _size(item)
        old, new = _index_key(before), _index_key(item)
        second = int(time.monotonic())
        if old is not None and old != new:
            rows = self._index[old[0]]
            del rows[bisect.bisect_left(rows, (old[1], pk, sk))]
            self.index_writes[old[0], second] += 1
        if new is not None:
            if old != new:
                bisect.insort(self._index[new[0]], (new[1], pk, sk))
            self.index_writes[new[0], second] += 1


def _key(item: Item) -> tuple[str, str]:
    return item["pk"]["S"], item["sk"]["S"]


def _index_key(item: Item | None) -> tuple[str, str] | None:
    if item is None or "open" not in item or "open_order" not in item:
        return None
    return item["open"]["S"], item["open_order"]["S"]


def _size(item: Item) -> int:
    """Bytes of the item's JSON, a little more than what DynamoDB counts."""
    return len(json.dumps(item, separators=(",", ":")))


def _plain(value: Item) -> Any:  # noqa: ANN401
    ((kind, content),) = value.items()
    return float(content) if kind == "N" else content


def _term_holds(term: str, item: Item, names: dict[str, str], values: Item) -> bool:
    match = CONDITION.fullmatch(term)
    assert match, term
    if match["missing"]:
        return names[match["missing"]] not in item
    if match["sized"]:
        name = names[match["sized"]]
        return name in item and len(_plain(item[name])) == _plain(values[match["size"]])
    name = names[match["name"]]
    if name not in item:
        return False
    left, right = _plain(item[name]), _plain(values[match["value"]])
    return bool({"=": left == right, ">": left > right, "<": left < right}[match["operator"]])


def _sum(before: Item | None, added: Item) -> Item:
    if before is None:
        return added
    if "SS" in added:
        return {"SS": sorted({*before["SS"], *added["SS"]})}
    return {"N": str(int(before["N"]) + int(added["N"]))}
