"""Deletions that are due: a publish has replaced a generation, or has failed after objects of it became visible.

The item is written in the same transaction as DONE or FAILED, so no crash can lose it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from lake.ledger.arrivals import EXPIRY
from lake.ledger.manifest_row import INDEX_ATTRIBUTES, ManifestRow
from lake.ledger.table import Key, LedgerTable, update_request
from lake.partition import Partition
from lake.time import iso_utc

DUE = "due-deletion"
"""Partition key of the index; ``open_order`` begins with the time at which the generation ended."""


@dataclass(frozen=True, slots=True)
class DueDeletion:
    """Objects that nobody needs any more, once readers had time to finish.

    Of a manifest that is published in ``generation``: those of earlier generations. Else: those of this generation.
    """

    partition: Partition
    manifest: str
    generation: int
    ended_at: str
    """ISO 8601, UTC: when the generation ended."""


class Deletions:
    """Reads and closes the deletions that are due."""

    def __init__(self, table: LedgerTable) -> None:
        self._table = table

    def due(self, before: datetime) -> Iterator[DueDeletion]:
        """Deletions of generations that ended before a time, oldest first, page by page, from the index: a hint."""
        for item in self._table.query(DUE, after="0", before=iso_utc(before), index=True):
            partition = Partition.parse(item["pk"].removeprefix(_pk("")))
            ended_at = item["open_order"].partition("#")[0]
            yield DueDeletion(partition, item["manifest"], item["generation"], ended_at)

    def is_pending(self, partition: Partition) -> bool:
        """Whether readers may see replaced objects of an hour, by a strongly consistent query."""
        return any("open" in item for item in self._table.query(_pk(partition)))

    def close(self, due: DueDeletion, now: datetime) -> None:
        """The objects are gone; DynamoDB deletes the item in the next days. Idempotent."""
        key = _key(due.partition, due.manifest, due.generation)
        self._table.update(key, assign={EXPIRY: int(now.timestamp())}, remove=INDEX_ATTRIBUTES)


def deletion_action(table: str, row: ManifestRow, now: datetime) -> dict[str, Any]:
    """Action of the transaction that ends a generation: its deletion becomes due."""
    ended = iso_utc(now)
    listed = {"open": DUE, "open_order": f"{ended}#{row.id}", "manifest": row.id, "generation": row.generation}
    return {"Update": update_request(table, _key(row.partition, row.id, row.generation), listed, {}, (), ())}


def _pk(partition: Partition | str) -> str:
    return f"{DUE}#{partition}"


def _key(partition: Partition, manifest: str, generation: int) -> Key:
    return Key(_pk(partition), f"{manifest}#g{generation}")
