"""Partition rows: one for each hour of a dataset, and the list of the manifests that were made for it.

An hour is listed in the index from the first manifest that is recorded for it until readers were told that it is
complete, and again from the next manifest on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lake.ledger.hour_row import HourCounts, HourRow, HourState, hour_row, told_attributes
from lake.ledger.manifest_row import INDEX_ATTRIBUTES
from lake.ledger.table import Condition, Key, RefusedError
from lake.partition import Partition
from lake.time import iso_utc

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from datetime import datetime

    from lake.ledger.table import LedgerTable

UNSETTLED = "unsettled-hour"
"""Partition key of the index for hours that a sweep still has to look at; ``open_order`` begins with the hour."""


class Partitions:
    """Reads and changes partition rows."""

    def __init__(self, table: LedgerTable) -> None:
        self._table = table

    def list_manifest(self, partition: Partition, manifest: str, now: datetime) -> None:
        """List a manifest of the hour that is about to be queued.

        Before its row exists, so that no look at the hour misses it. Successors are not listed: their sources name
        them.
        """
        self._table.update(Key(_manifests_of(partition), manifest), assign={"listed_at": iso_utc(now)})
        self.touch(partition, now)

    def touch(self, partition: Partition, now: datetime) -> None:
        """Note that a listed manifest of the hour is about to be queued: the hour is no longer complete."""
        listed = {"open": UNSETTLED, "open_order": f"{partition.stamp}#{partition.dataset}"}
        assign = {"touched_at": iso_utc(now), **listed}
        self._table.update(_key(partition), assign=assign, add={"touched": 1})

    def get(self, partition: Partition) -> HourRow:
        """The row by a strongly consistent read; one that nothing has touched: nothing was recorded."""
        return hour_row(partition, self._table.get(_key(partition)) or {})

    def hours(self, dataset: str, first: str, last: str) -> list[HourRow]:
        """Rows of a dataset from ``first`` to ``last``, both ``YYYY-MM-DDTHH`` and inclusive; consistent."""
        items = self._table.query(_pk(dataset), after=first, before=last)
        return [hour_row(Partition.parse(f"{dataset}#{item['sk']}"), item) for item in items]

    def unsettled(self) -> Iterator[HourRow]:
        """Hours that are not complete, or about which readers were not told, oldest first, from the index: a hint."""
        for item in self._table.query(UNSETTLED, index=True):
            dataset = item["pk"].removeprefix(_pk(""))
            yield hour_row(Partition.parse(f"{dataset}#{item['sk']}"), item)

    def manifests(self, partition: Partition) -> list[str]:
        """Ids of the manifests that were listed, oldest first, by a strongly consistent query."""
        return [item["sk"] for item in self._table.query(_manifests_of(partition))]

    def wait_for(self, row: HourRow, manifest: str) -> None:
        """Remember a manifest that is not done, for the next look: the hour cannot be complete before it is."""
        self._table.update(_key(row.partition), assign={"waits_for": manifest})

    def tell(self, state: HourState, row: HourRow, counts: HourCounts, now: datetime) -> bool:
        """Decide what readers are told next; False: the hour was touched, or something else told, since ``row``."""
        changes = told_attributes(state, row, counts, iso_utc(now))
        # Before the first revision there is no attribute to compare.
        same = Condition("revision", "=", row.revision) if row.revision else Condition("revision", "missing")
        return self._change(row, changes, ("waits_for",), [same, Condition("touched", "=", row.touched)])

    def announced(self, row: HourRow) -> bool:
        """Marker and event of the row's revision are out; False: there is another revision by now.

        An hour that is complete for the first time, and that nothing has touched, leaves the index.
        """
        return self._end(row, {"announced": row.revision}, leaves=row.revision == 1)

    def confirmed(self, row: HourRow) -> bool:
        """The marker of the row's revision was written when no earlier writer was left; False: another revision is.

        A complete hour that nothing has touched leaves the index.
        """
        return self._end(row, {"confirmed": row.revision}, leaves=True)

    def _end(self, row: HourRow, changes: Mapping[str, object], *, leaves: bool) -> bool:
        same = Condition("revision", "=", row.revision)
        if leaves and row.is_settled:
            untouched = Condition("touched", "=", row.settled)
            if self._change(row, changes, INDEX_ATTRIBUTES, [same, untouched]):
                return True
        return self._change(row, changes, (), [same])

    def _change(
        self, row: HourRow, changes: Mapping[str, object], remove: tuple[str, ...], conditions: list[Condition]
    ) -> bool:
        try:
            self._table.update(_key(row.partition), assign=changes, remove=remove, conditions=conditions)
        except RefusedError:
            # The answer of an earlier try may have been lost.
            item = self._table.get(_key(row.partition)) or {}
            return {name: item.get(name) for name in changes} == changes
        return True


def _pk(dataset: str) -> str:
    return f"partition#{dataset}"


def _key(partition: Partition) -> Key:
    return Key(_pk(partition.dataset), partition.stamp)


def _manifests_of(partition: Partition) -> str:
    return f"manifest-of-hour#{partition}"
