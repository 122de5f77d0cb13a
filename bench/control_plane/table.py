"""A DynamoDB table in memory: the service's own JSON and pages.

Nothing else writes to it, so every condition of a write holds.
"""

import bisect
import json
import re
import time
from collections import Counter, defaultdict
from collections.abc import Mapping
from typing import Any

Item = dict[str, Any]
MAX_PAGE_BYTES = 1 << 20
"""Maximum size of the answer to a query (DynamoDB's "Service quotas")."""
CLAUSE = re.compile(r"(SET|ADD|REMOVE) ")


class Table:
    """One table with the index ``open``; ``index_writes`` counts its writes by partition key and second."""

    def __init__(self) -> None:
        self._items: dict[tuple[str, str], Item] = {}
        self._sizes: dict[tuple[str, str], int] = {}
        self._sorted: defaultdict[str, list[str]] = defaultdict(list)
        self._index: defaultdict[str, list[tuple[str, str, str]]] = defaultdict(list)
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

    def open_manifests(self) -> list[Item]:
        return [
            item for (_, sk), item in self._items.items() if sk == "manifest" and {"partition", "open"} <= item.keys()
        ]

    def close(self, row: Item, changes: Mapping[str, Any]) -> None:
        """Change the row of a manifest, which leaves the index; the write is not counted."""
        self._store({**{name: row[name] for name in row if name not in ("open", "open_order")}, **changes})
        self.index_writes.clear()

    def answer(self, operation: str, request: Item) -> Item:
        """Answer one request."""
        return self._operations[operation](request)

    def _get_item(self, request: Item) -> Item:
        item = self._items.get(_key(request["Key"]))
        return {} if item is None else {"Item": item}

    def _batch_get_item(self, request: Item) -> Item:
        ((table, asked),) = request["RequestItems"].items()
        found = [item for key in asked["Keys"] if (item := self._items.get(_key(key))) is not None]
        return {"Responses": {table: found}, "UnprocessedKeys": {}}

    def _put_item(self, request: Item) -> Item:
        self._store(request["Item"])
        return {}

    def _transact_write_items(self, request: Item) -> Item:
        for kind, item in (next(iter(action.items())) for action in request["TransactItems"]):
            self._put_item(item) if kind == "Put" else self._update_item(item)
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

    def _update_item(self, request: Item) -> Item:
        names, values = request.get("ExpressionAttributeNames", {}), request.get("ExpressionAttributeValues", {})
        item: Item = {**self._items.get(_key(request["Key"]), {}), **request["Key"]}
        parts = CLAUSE.split(request["UpdateExpression"])[1:]
        for kind, text in zip(parts[::2], parts[1::2], strict=True):
            for term in text.strip().split(", "):
                if kind == "REMOVE":
                    item.pop(names[term], None)
                elif "if_not_exists" in term:
                    name, value = term.removesuffix(")").split(" = if_not_exists(")
                    item.setdefault(names[name], values[value.partition(",")[2]])
                elif kind == "SET":
                    name, value = term.split(" = ")
                    item[names[name]] = values[value]
                else:
                    name, value = term.split(" ")
                    item[names[name]] = _sum(item.get(names[name]), values[value])
        self._store(item)
        return {}

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
    """Return the bytes of the item's JSON, a little more than DynamoDB counts."""
    return len(json.dumps(item, separators=(",", ":")))


def _sum(before: Item | None, added: Item) -> Item:
    if before is None:
        return added
    if "SS" in added:
        return {"SS": sorted({*before["SS"], *added["SS"]})}
    return {"N": str(int(before["N"]) + int(added["N"]))}
