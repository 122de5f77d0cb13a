"""Partition rows, one for each hour of a dataset, and the list of the manifests that were made for the hour.

An hour is in the index from its first recorded manifest until it is announced as complete, and again from the
next manifest on.

Also due deletions: after a publish replaced a generation, or failed when some objects were visible. Their item is
written in the transaction that sets DONE or FAILED, so no crash can lose it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

from lake.documents import decode_partial
from lake.ledger.arrivals import EXPIRY
from lake.ledger.manifest_row import INDEX_ATTRIBUTES, ManifestRow
from lake.ledger.table import Action, Key, Rows, same, update_action
from lake.manifest import Partition
from lake.time import iso_utc

UNSETTLED = "unsettled-hour"
"""Partition key of the index for hours that a sweep still has to check; ``open_order`` begins with the hour."""


class Partitions(Rows):
    def list_manifest(self, partition: Partition, manifest: str, now: datetime) -> None:
        """List a manifest of the hour that is about to be queued, and touch the hour.

        It must be called before the manifest's row exists, so that no check of the hour misses it. Successors are not
        listed, because their sources name them.
        """
        self._table.update(_manifest_of(partition, manifest), assign={"listed_at": iso_utc(now)})
        self.touch(partition, now)

    def touch(self, partition: Partition, now: datetime) -> None:
        """Record that a listed manifest of the hour is about to be queued: the hour is no longer complete."""
        self._table.update(_key(partition), assign=touched_attributes(partition, now), add={"touched": 1})

    def get(self, partition: Partition) -> HourRow:
        """The row by a strongly consistent read; an untouched row if nothing was recorded."""
        return hour_row(partition, self._table.get(_key(partition)))

    def get_many(self, partitions: Sequence[Partition]) -> list[HourRow]:
        """The rows of at most ``MAX_BATCH_KEYS`` different hours, in their order, by one strongly consistent read."""
        items = self._table.get_many([_key(partition) for partition in partitions])
        return [hour_row(partition, item) for partition, item in zip(partitions, items, strict=True)]

    def hours(self, dataset: str, first: str, last: str) -> list[HourRow]:
        """Rows of a dataset from ``first`` to ``last`` (``YYYY-MM-DDTHH``, inclusive), by a consistent query."""
        items = self._table.query(_pk(dataset), after=first, before=last)
        return [hour_row(Partition.parse(f"{dataset}#{item['sk']}"), item) for item in items]

    def unsettled(self) -> Iterator[HourRow]:
        """Hours that are not complete or not announced, oldest first, from the index: a hint."""
        for item in self._table.query(UNSETTLED, index=True):
            dataset = item["pk"].removeprefix(_pk(""))
            yield hour_row(Partition.parse(f"{dataset}#{item['sk']}"), item)

    def manifests(self, partition: Partition) -> list[str]:
        """Ids of the listed manifests, oldest first, by a strongly consistent query."""
        return [item["sk"] for item in self._table.query(_manifests_of(partition))]

    def wait_for(self, row: HourRow, manifest: str) -> None:
        """Record a manifest that is not done, for the next check: the hour cannot be complete before it is done."""
        self._table.update(_key(row.partition), assign={"waits_for": manifest})

    def decide(self, state: HourState, row: HourRow, counts: HourCounts, now: datetime) -> bool:
        """Decide the next revision; False: the hour was touched, or another revision decided, since ``row``."""
        found = {"counts": asdict(counts), "settled": row.touched} if state == HourState.COMPLETE else {}
        changes = {"decided": state, "decided_at": iso_utc(now), "revision": row.revision + 1, **found}
        # Before the first revision there is no attribute to compare.
        unchanged = same(revision=row.revision or None, touched=row.touched)
        return self._table.update_once(_key(row.partition), changes, ("waits_for",), unchanged)

    def announced(self, row: HourRow) -> bool:
        """Record that marker and event of the row's revision are out. False: another revision is current.

        An hour that is complete for the first time and was not touched since leaves the index.
        """
        return self._end(row, {"announced": row.revision}, leaves=row.revision == 1)

    def confirmed(self, row: HourRow) -> bool:
        """Record that the revision's marker was written after all earlier writers ended. False: another one is current.

        A complete hour that was not touched since leaves the index.
        """
        return self._end(row, {"confirmed": row.revision}, leaves=True)

    def _end(self, row: HourRow, changes: Mapping[str, object], *, leaves: bool) -> bool:
        key, unchanged = _key(row.partition), same(revision=row.revision)
        if leaves and row.is_settled:
            untouched = same(touched=row.settled)
            if self._table.update_once(key, changes, INDEX_ATTRIBUTES, [*unchanged, *untouched]):
                return True
        return self._table.update_once(key, changes, (), unchanged)


def _pk(dataset: str) -> str:
    return f"partition#{dataset}"


def _key(partition: Partition) -> Key:
    return Key(_pk(partition.dataset), partition.stamp)


def _manifests_of(partition: Partition) -> str:
    return f"manifest-of-hour#{partition}"


def _manifest_of(partition: Partition, manifest: str) -> Key:
    return Key(_manifests_of(partition), manifest)


def touched_attributes(partition: Partition, now: datetime) -> dict[str, str]:
    """The attributes that put the row of an hour into the index."""
    return {"touched_at": iso_utc(now), "open": UNSETTLED, "open_order": f"{partition.stamp}#{partition.dataset}"}


def listing_actions(rows: Sequence[ManifestRow], now: datetime) -> list[Action]:
    """Actions of the transaction that queues manifests: list each manifest, and touch each of their hours once."""
    listed = {"listed_at": iso_utc(now)}
    hours = {row.partition for row in rows}
    return [
        *(update_action(_manifest_of(row.partition, row.id), listed) for row in rows),
        *(update_action(_key(hour), touched_attributes(hour, now), {"touched": 1}) for hour in hours),
    ]


class HourState(StrEnum):
    OPEN = "open"
    """Rows are still to come, or files are missing until their manifest is converted again."""
    COMPLETE = "complete"
    """Each recorded file of the hour is published or in the quarantine."""
    REOPENED = "reopened"
    """The hour was complete, and something came after that: a late file, a reprocess, repaired lines."""


@dataclass(frozen=True, slots=True)
class HourCounts:
    manifests: int = 0
    files: int = 0
    bytes: int = 0
    rows: int = 0
    quarantined_lines: int = 0
    unreadable_files: int = 0
    published_at: str = ""
    """ISO 8601, UTC: time of the last publication; empty if nothing was published."""
    batch: int = 0
    """The first batch with which the Iceberg table shows all rows; 0 if no batch was needed or there is no table."""
    snapshot: int = 0


@dataclass(frozen=True, slots=True)
class HourRow:
    partition: Partition
    touched: int = 0
    """Number of times that a manifest of the hour was about to be queued. It only grows."""
    touched_at: str = ""
    """ISO 8601, UTC: time of the last touch."""
    decided: HourState = HourState.OPEN
    """The state that is announced, or about to be."""
    decided_at: str = ""
    settled: int = 0
    """Value of ``touched`` when the hour was found complete."""
    revision: int = 0
    """Number of changes of ``decided``."""
    announced: int = 0
    """The last revision whose marker and event are out."""
    confirmed: int = 0
    """The last revision whose marker was written again after all sweeps with an earlier row had ended."""
    counts: HourCounts = HourCounts()
    """Counts at the time when the hour was last found complete."""
    waits_for: str | None = None
    """A manifest that was not done at a sweep's last check: a hint."""

    @property
    def is_settled(self) -> bool:
        """Whether it was found complete and was not touched since."""
        return self.decided == HourState.COMPLETE and self.touched == self.settled

    @property
    def state(self) -> HourState:
        """The state by this row alone: a complete hour that was not yet found complete is still open or reopened."""
        if self.is_settled:
            return HourState.COMPLETE
        return HourState.OPEN if self.decided == HourState.OPEN else HourState.REOPENED


def hour_row(partition: Partition, item: Mapping[str, Any] | None) -> HourRow:
    return decode_partial(HourRow(partition), item)


DUE = "due-deletion"
"""Partition key of the index; ``open_order`` begins with the time at which the generation ended."""


@dataclass(frozen=True, slots=True)
class DueDeletion:
    """Objects to delete after readers had time to finish.

    If the manifest is published in ``generation``: objects of earlier generations. Otherwise: of this generation.
    """

    partition: Partition
    manifest: str
    generation: int
    ended_at: str
    """ISO 8601, UTC: time at which the generation ended."""
    only_lake: bool
    """Whether the quarantine objects are deleted, while an Iceberg table still needs the lake objects."""

    @property
    def key(self) -> Key:
        return _deletion_key(self.partition, self.manifest, self.generation)

    @property
    def place(self) -> str:
        return f"{self.ended_at}#{self.manifest}"


class Deletions(Rows):
    def due(self, before: datetime, after: str = "0") -> Iterator[DueDeletion]:
        """Deletions of generations that ended until ``before``, oldest first, page by page, from the index: a hint.

        ``after`` is the ``place`` of the first one.
        """
        last = iso_utc(before)
        # A longer grace period may have been set after the place was kept.
        for item in self._table.query(DUE, after=min(after, last), before=last, index=True):
            partition = Partition.parse(item["pk"].removeprefix(_deletion_pk("")))
            ended_at = item["open_order"].partition("#")[0]
            yield DueDeletion(partition, item["manifest"], item["generation"], ended_at, "only_lake" in item)

    def is_pending(self, partition: Partition) -> bool:
        """Whether readers may still see replaced objects of an hour, by a strongly consistent query."""
        return any("open" in item for item in self._table.query(_deletion_pk(partition)))

    def keep_lake(self, due: DueDeletion) -> None:
        """Record that the quarantine objects are deleted, while an Iceberg table needs the lake objects. Idempotent."""
        self._table.update(due.key, assign={"only_lake": True})

    def close(self, due: DueDeletion, now: datetime) -> None:
        """Record that the objects are deleted; DynamoDB deletes the item in the next days. Idempotent."""
        self._table.update(due.key, assign={EXPIRY: int(now.timestamp())}, remove=INDEX_ATTRIBUTES)


def deletion_action(row: ManifestRow, now: datetime) -> Action:
    """The action, in the transaction that ends a generation, that makes its deletion due."""
    ended = iso_utc(now)
    listed = {"open": DUE, "open_order": f"{ended}#{row.id}", "manifest": row.id, "generation": row.generation}
    return update_action(_deletion_key(row.partition, row.id, row.generation), listed)


def _deletion_pk(partition: Partition | str) -> str:
    return f"{DUE}#{partition}"


def _deletion_key(partition: Partition, manifest: str, generation: int) -> Key:
    return Key(_deletion_pk(partition), f"{manifest}#g{generation}")
