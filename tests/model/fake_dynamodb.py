# ruff: noqa: N803 (the names are boto3's)
"""One DynamoDB table in memory: conditions and update expressions are evaluated, not assumed."""

import operator
import re
from typing import Any

from botocore.exceptions import ClientError

from lake.ledger.table import MAX_BATCH_KEYS

Item = dict[str, Any]
COMPARISON = re.compile(r"(#\w+) (=|>|<) (:\w+)")
SIZE = re.compile(r"size\((#\w+)\) = (:\w+)")
MISSING = re.compile(r"attribute_not_exists\((#\w+)\)")
CLAUSE = re.compile(r"(SET|ADD|REMOVE) ")


class FakeDynamoDB:
    """The calls of ``meta.client`` that the ledger makes."""

    ERRORS = (("ThrottlingException", 400), ("InternalServerError", 500), ("AccessDeniedException", 400))
    """Amazon DynamoDB Developer Guide, "Error handling"."""

    def __init__(self) -> None:
        self.items: dict[tuple[str, str], Item] = {}
        self.index_view: dict[tuple[str, str], Item] = {}
        """The items that the lagging index shows."""

    def get_item(self, *, TableName: str, Key: Item, ConsistentRead: bool) -> Item:
        assert ConsistentRead
        item = self.items.get((Key["pk"], Key["sk"]))
        return {} if item is None else {"Item": dict(item)}

    def batch_get_item(self, *, RequestItems: dict[str, Item]) -> Item:
        ((table, request),) = RequestItems.items()
        assert request["ConsistentRead"]
        assert 0 < len(request["Keys"]) <= MAX_BATCH_KEYS
        found = [self.get_item(TableName=table, Key=key, ConsistentRead=True) for key in request["Keys"]]
        return {"Responses": {table: [answer["Item"] for answer in found if answer]}, "UnprocessedKeys": {}}

    def put_item(self, **request: Any) -> Item:
        self._check(request["Item"], request)
        self._put(request)
        return {}

    def update_item(self, **request: Any) -> Item:
        self._check(request["Key"], request)
        self._update(request)
        return {}

    def delete_item(self, **request: Any) -> Item:
        self._check(request["Key"], request)
        self.items.pop((request["Key"]["pk"], request["Key"]["sk"]), None)
        return {}

    def transact_write_items(self, *, TransactItems: list[Item]) -> Item:
        reasons = []
        for action in TransactItems:
            ((kind, request),) = action.items()
            holds = self._holds(request["Item" if kind == "Put" else "Key"], request)
            reasons.append({"Code": "None" if holds else "ConditionalCheckFailed"})
        if any(reason["Code"] != "None" for reason in reasons):
            error = {"Code": "TransactionCanceledException", "Message": "cancelled"}
            response: Any = {"Error": error, "CancellationReasons": reasons}
            raise ClientError(response, "TransactWriteItems")
        for action in TransactItems:
            ((kind, request),) = action.items()
            self._put(request) if kind == "Put" else self._update(request)
        return {}

    def query(self, **request: Any) -> Item:
        names, values = request["ExpressionAttributeNames"], request["ExpressionAttributeValues"]
        index = "IndexName" in request
        assert index or request["ConsistentRead"]
        sort = "open_order" if index else "sk"
        found = [item for item in self.items.values() if item.get(names["#p"]) == values[":p"] and sort in item]
        if "BETWEEN" in request["KeyConditionExpression"]:
            found = [item for item in found if values[":a"] <= item[names["#s"]] <= values[":b"]]
        return {"Items": [dict(item) for item in sorted(found, key=lambda item: (item[sort], item["pk"]))]}

    def stale_query(self, **request: Any) -> Item:
        """A query of the index in its state at the last ``catch_up``, including the rows' other attributes.

        A query of the table is consistent: it is never stale.
        """
        if "IndexName" not in request:
            return self.query(**request)
        current, self.items = self.items, self.index_view
        try:
            return self.query(**request)
        finally:
            self.items = current

    def catch_up(self) -> None:
        """Bring the index up to date with every write."""
        self.index_view = {key: dict(item) for key, item in self.items.items()}

    def _holds(self, key: Item, request: Item) -> bool:
        condition = request.get("ConditionExpression")
        if condition is None:
            return True
        item = self.items.get((key["pk"], key["sk"]), {})
        names, values = request.get("ExpressionAttributeNames", {}), request.get("ExpressionAttributeValues", {})
        return all(self._term_holds(term, item, names, values) for term in condition.split(" AND "))

    @staticmethod
    def _term_holds(term: str, item: Item, names: dict[str, str], values: Item) -> bool:
        if match := MISSING.fullmatch(term):
            return names[match[1]] not in item
        if match := SIZE.fullmatch(term):
            return names[match[1]] in item and len(item[names[match[1]]]) == values[match[2]]
        match = COMPARISON.fullmatch(term)
        assert match, term
        left, right = item.get(names[match[1]]), values[match[3]]
        if names[match[1]] not in item or isinstance(left, str) != isinstance(right, str):
            return False
        compare: Any = {"=": operator.eq, ">": operator.gt, "<": operator.lt}[match[2]]
        return bool(compare(left, right))

    def _check(self, key: Item, request: Item) -> None:
        if not self._holds(key, request):
            error: Any = {"Code": "ConditionalCheckFailedException", "Message": "The conditional request failed"}
            raise ClientError({"Error": error}, "Write")

    def _put(self, request: Item) -> None:
        item = {name: _stored(value) for name, value in request["Item"].items()}
        self.items[item["pk"], item["sk"]] = item

    def _update(self, request: Item) -> None:
        names, values = request.get("ExpressionAttributeNames", {}), request.get("ExpressionAttributeValues", {})
        key = request["Key"]
        item: Item = dict(self.items.get((key["pk"], key["sk"])) or key)
        parts = CLAUSE.split(request["UpdateExpression"])[1:]
        for kind, text in zip(parts[::2], parts[1::2], strict=True):
            for term in text.strip().split(", "):
                if kind == "REMOVE":
                    item.pop(names[term], None)
                    continue
                if "if_not_exists" in term:
                    name, value = term.removesuffix(")").split(" = if_not_exists(")
                    item.setdefault(names[name], _stored(values[value.partition(",")[2]]))
                    continue
                name, value = term.split(" = ") if kind == "SET" else term.split(" ")
                amount = _stored(values[value])
                if kind == "ADD" and names[name] in item:
                    current = item[names[name]]
                    amount = current | amount if isinstance(amount, frozenset) else current + amount
                item[names[name]] = amount
        self.items[item["pk"], item["sk"]] = item


def _stored(value: Any) -> Any:
    """The plain value that the table returns: subclasses such as ``State`` do not survive."""
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, set | frozenset):
        return frozenset(_stored(item) for item in value)
    if isinstance(value, list | tuple):
        return [_stored(item) for item in value]
    if isinstance(value, dict):
        return {name: _stored(item) for name, item in value.items()}
    return value
