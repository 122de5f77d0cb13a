"""Manifests that did not get through, as a whole or with all of their files: the index lists them beside the open ones.

They leave the index when they are converted again, and with it every file.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

from lake.ledger.manifest_row import INDEX_ATTRIBUTES, State, open_attributes, open_key, row_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lake.ledger.manifest_row import ManifestRow
    from lake.ledger.published_totals import PublishedTotals
    from lake.ledger.table import LedgerTable
    from lake.manifest import Lane


class Failure(StrEnum):
    """What did not get through."""

    FAILED = State.FAILED.value
    """The whole manifest."""
    UNREADABLE = "UNREADABLE"
    """Files of a DONE manifest, which could not be read."""


class Failures:
    """Reads the manifests that did not get through."""

    def __init__(self, table: LedgerTable) -> None:
        self._table = table

    def of_lane(self, lane: Lane, failure: Failure) -> Iterator[ManifestRow]:
        """Their rows, oldest first, from the index: a hint that a consistent read has to confirm."""
        return (row_of(item) for item in self._table.query(open_key(lane, failure), index=True))


def failed_attributes(row: ManifestRow) -> dict[str, str]:
    """The attributes that list a manifest that becomes FAILED."""
    return open_attributes(row, Failure.FAILED)


def finished_attributes(row: ManifestRow, totals: PublishedTotals) -> tuple[dict[str, str], tuple[str, ...]]:
    """Attributes to assign, and those to remove, of a manifest that becomes DONE: it is listed for unreadable files."""
    if totals.failed_files:
        return open_attributes(row, Failure.UNREADABLE), ()
    return {}, INDEX_ATTRIBUTES
