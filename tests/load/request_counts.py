"""Counts the requests that a part of the product sends, and the write units that they cost."""

import contextlib
from collections import Counter
from collections.abc import Iterator
from typing import Any

import botocore.client

WRITES = frozenset({"PutItem", "UpdateItem"})
"""Each costs one write unit for an item of less than 1 kB; a transaction costs two for each action."""


@contextlib.contextmanager
def counted_requests() -> Iterator[Counter[str]]:
    """The number of requests that this process sends in the block, by operation, and their ``write units``."""
    counts: Counter[str] = Counter()
    base: Any = botocore.client.BaseClient
    original = base._make_api_call

    def call(self: Any, operation: str, request: dict[str, Any]) -> Any:
        counts[operation] += 1
        counts["write units"] += write_units(operation, request)
        return original(self, operation, request)

    base._make_api_call = call
    try:
        yield counts
    finally:
        base._make_api_call = original


def write_units(operation: str, request: dict[str, Any]) -> int:
    """The write units of one request: for the item, and for the index of open manifests and hours if it changes."""
    if operation == "TransactWriteItems":
        return sum(2 + _index_units(next(iter(action.values()))) for action in request["TransactItems"])
    return 1 + _index_units(request) if operation in WRITES else 0


def _index_units(request: dict[str, Any]) -> int:
    """A row that moves within the index costs a deletion and a put there; any other change of its row costs one write.

    Rows of collections and hours are changed while they are in the index, or leave it by the change.
    """
    if "Item" in request:
        return int("open" in request["Item"])
    kind = str(request["Key"]["pk"]).partition("#")[0]
    if kind in ("collection", "partition"):
        return 1
    if kind != "manifest":
        return 0
    return 2 if "#open =" in request["UpdateExpression"] else 1
