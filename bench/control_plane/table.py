"""A DynamoDB table in memory: the service's own JSON and pages.

Nothing else writes to it, so every condition of a write holds.
"""

import json
import re
import sqlite3
import time
from collections import Counter
from collections.abc import Mapping
from typing import Any

Item = dict[str, Any]
MAX_PAGE_BYTES = 1 << 20
"""Maximum size of the answer to a query (DynamoDB's "Service quotas")."""
CLAUSE = re.compile(r"(SET|ADD|REMOVE) ")
SCHEMA = """
CREATE TABLE keys (pk, sk, open, open_order, size, PRIMARY KEY (pk, sk)) WITHOUT ROWID;
CREATE INDEX open ON keys (open, open_order, pk, sk) WHERE open IS NOT NULL;
"""


class Table:
    """One table with the index ``open``; ``index_writes`` counts its writes by partition key and second."""

    def __init__(self) -> None:
        self._items: dict[tuple[str | None, ...], Item] = {}
        # Keys in order. Threads take turns: each request holds the lock of the stand-in.
        self._database = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
        self._database.executescript(SCHEMA)
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
        self.load({**{name: row[name] for name in row if name not in ("open", "open_order")}, **changes})

    def answer(self, operation: str, request: Item) -> Item:
        """Answer one request."""
        return self._operations[operation](request)

    def _get_item(self, request: Item) -> Item:
        item = self._items.get(_strings(request["Key"], "pk", "sk"))
        return {} if item is None else {"Item": item}

    def _batch_get_item(self, request: Item) -> Item:
        ((table, asked),) = request["RequestItems"].items()
        found = [item for key in asked["Keys"] if (item := self._items.get(_strings(key, "pk", "sk"))) is not None]
        return {"Responses": {table: found}, "UnprocessedKeys": {}}

    def _put_item(self, request: Item) -> Item:
        self._store(request["Item"])
        return {}

    def _transact_write_items(self, request: Item) -> Item:
        for kind, item in (next(iter(action.items())) for action in request["TransactItems"]):
            self._put_item(item) if kind == "Put" else self._update_item(item)
        return {}

    def _query(self, request: Item) -> Item:
        partition, values = request["ExpressionAttributeNames"]["#p"], request["ExpressionAttributeValues"]
        low, high = values.get(":a", {"S": ""})["S"], values.get(":b", {"S": chr(0x10FFFF)})["S"]
        order = ("open_order", "pk", "sk") if partition == "open" else ("sk",)
        after = _strings(request.get("ExclusiveStartKey", {key: {"S": ""} for key in order}), *order)
        rows = self._database.execute(
            f"SELECT pk, sk, size FROM keys WHERE {partition} = ? AND {order[0]} BETWEEN ? AND ? "  # noqa: S608
            f"AND ({', '.join(order)}) > ({', '.join('?' * len(order))}) ORDER BY {', '.join(order)}",
            (values[":p"]["S"], low, high, *after),
        )
        found: list[Item] = []
        size = 0
        for *key, item_size in rows:
            size += item_size
            if size > MAX_PAGE_BYTES:
                last = {name: found[-1][name] for name in {"pk", partition, *order}}
                return {"Items": found, "Count": len(found), "LastEvaluatedKey": last}
            found.append(self._items[tuple(key)])
        return {"Items": found, "Count": len(found)}

    def _update_item(self, request: Item) -> Item:
        names, values = request.get("ExpressionAttributeNames", {}), request.get("ExpressionAttributeValues", {})
        item: Item = {**self._items.get(_strings(request["Key"], "pk", "sk"), {}), **request["Key"]}
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
        key = _strings(item, "pk", "sk")
        old, new = (_strings(row, "open", "open_order") for row in (self._items.get(key, {}), item))
        # The bytes of the item's JSON are a little more than DynamoDB counts.
        size = len(json.dumps(item, separators=(",", ":")))
        self._database.execute("INSERT OR REPLACE INTO keys VALUES (?, ?, ?, ?, ?)", (*key, *new, size))
        self._items[key] = item
        for partition, order in {old, new}:
            if partition is not None and order is not None:
                self.index_writes[partition, int(time.monotonic())] += 1


def _strings(item: Item, *names: str) -> tuple[str | None, ...]:
    return tuple(item[name]["S"] if name in item else None for name in names)


def _sum(before: Item | None, added: Item) -> Item:
    if before is None:
        return added
    if "SS" in added:
        return {"SS": sorted({*before["SS"], *added["SS"]})}
    return {"N": str(int(before["N"]) + int(added["N"]))}
