"""Resubmissions of each hour, numbered: the next one is recorded on condition that its number is free.

Who records one has read all before it, so no two of an hour hold the same line, however many callers there are. A row
is never changed.
"""

from __future__ import annotations

from dataclasses import dataclass

from lake.codec import decode, encode
from lake.ledger.table import Condition, Key, LedgerTable, RefusedError
from lake.manifest import ObjectVersion
from lake.partition import Partition


@dataclass(frozen=True, slots=True)
class ResubmissionRow:
    """Lines of the quarantine that are given back to an hour."""

    name: str
    """Name of its document and its lines (``lake.layout``)."""
    partition: Partition
    file: ObjectVersion
    """The repaired lines: the one version of the object that is ever converted."""
    document_sha256: str
    """SHA-256 (hexadecimal) of the document."""
    lines: int
    recorded_at: str
    """ISO 8601, UTC."""


class Resubmissions:
    """Reads and records resubmissions."""

    def __init__(self, table: LedgerTable) -> None:
        self._table = table

    def of(self, partition: Partition) -> list[ResubmissionRow]:
        """All of an hour in their order, by a strongly consistent query."""
        prefix = f"{partition.stamp}#"
        items = self._table.query(_pk(partition.dataset), after=prefix, before=f"{prefix}~")
        return [decode(ResubmissionRow, item) for item in items]

    def record(self, row: ResubmissionRow, number: int) -> bool:
        """Record it as the next one after ``number`` others; False: another one has been recorded since.

        A repetition, and a write whose answer was lost, find the row that they have written.
        """
        key = Key(_pk(row.partition.dataset), f"{row.partition.stamp}#{number:06d}")
        try:
            self._table.put(key, encode(row), [Condition("pk", "missing")])
        except RefusedError:
            item = self._table.get(key)
            return item is not None and item["name"] == row.name
        return True


def _pk(dataset: str) -> str:
    return f"resubmission#{dataset}"
