"""DynamoDB: a global secondary index is a replica that applies the writes of its table with a delay.

AWS promises no bound: "eventually consistent", usually well under a second (Amazon DynamoDB Developer Guide, "Using
global secondary indexes"). The emulator reads an index from the table itself.
"""

import contextvars
import time
from collections import defaultdict, deque
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ministack.core.responses import AccountRegionScopedDict  # type: ignore[import-untyped]
from ministack.services import dynamodb  # type: ignore[import-untyped]

from local.emulator_patches import EmulatorValue, Original, setting, wrap
from local.limits import Limits

_OF_ITEMS = ("items", "ItemCount", "TableSizeBytes", "_index_members")
"""Entries of a table's record that follow from its items."""

_reads_index: contextvars.ContextVar[bool] = contextvars.ContextVar("reads_index", default=False)
_replicas: "dict[int, _Replica]" = {}
"""Replicas by the identity of the table's record, which the replica keeps alive."""


class _Replica:
    """A table as its indexes show it: without the latest writes."""

    def __init__(self, table: dict[str, Any]) -> None:
        self._table = table
        self._record: dict[str, Any] = {"items": defaultdict(dict)}
        self._writes: deque[tuple[float, Callable[[], object]]] = deque()

    def add(self, change: Callable[..., object], *arguments: object) -> None:
        """Remember one write of the table."""
        self._writes.append((time.monotonic(), lambda: change(self._record, *arguments)))

    def record(self, lag_seconds: float) -> dict[str, Any]:
        """Return the table's record with its items from ``lag_seconds`` ago."""
        due = time.monotonic() - lag_seconds
        while self._writes and self._writes[0][0] <= due:
            self._writes.popleft()[1]()
        self._record.update({name: value for name, value in self._table.items() if name not in _OF_ITEMS})
        return self._record


class _Tables(AccountRegionScopedDict):  # type: ignore[misc]
    """All tables; a read of an index gets the replica."""

    __slots__ = ()
    state: Path
    """The folder of the cloud."""

    def get(self, key: str, default: EmulatorValue = None) -> EmulatorValue:
        table = super().get(key, default)
        if not table or not _reads_index.get():
            return table
        return _replica(table).record(Limits.read(_Tables.state).index_lag_seconds)


def patch(state: Path) -> None:
    _Tables.state = state
    dynamodb._tables.__class__ = _Tables
    wrap(dynamodb, "_set_item", _write)
    wrap(dynamodb, "_remove_item", _write)
    wrap(dynamodb, "_query", _read)
    wrap(dynamodb, "_scan", _read)


def _replica(table: dict[str, Any]) -> _Replica:
    return _replicas.setdefault(id(table), _Replica(table))


def _write(original: Original, table: dict[str, Any], *arguments: object) -> EmulatorValue:
    result = original(table, *arguments)
    if table.get("GlobalSecondaryIndexes"):
        _replica(table).add(original, *arguments)
    return result


def _read(original: Original, data: dict[str, Any]) -> EmulatorValue:
    with setting(_reads_index, bool(data.get("IndexName"))):
        return original(data)
