"""The ledger row of one hour of a dataset: what was recorded for it, and what readers were told about it."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lake.partition import Partition


class HourState(StrEnum):
    """What a reader of an hour can rely on."""

    OPEN = "open"
    """Rows are still to come, or files of it are missing until their manifest is converted again."""
    COMPLETE = "complete"
    """Each recorded file of it is published or in the quarantine."""
    REOPENED = "reopened"
    """It was complete, and something came after it: a late file, a reprocess, repaired lines."""


@dataclass(frozen=True, slots=True)
class HourCounts:
    """What the DONE manifests of an hour have read and published."""

    manifests: int = 0
    files: int = 0
    bytes: int = 0
    """Size of the files as stored."""
    rows: int = 0
    quarantined_lines: int = 0
    unreadable_files: int = 0
    published_at: str = ""
    """ISO 8601, UTC: the last publication; empty: there was none."""


@dataclass(frozen=True, slots=True)
class HourRow:
    """One hour of a dataset as the ledger has it."""

    partition: Partition
    touched: int = 0
    """Number of times that a manifest of the hour was about to be queued; only grows."""
    touched_at: str = ""
    """ISO 8601, UTC: the last of these times."""
    told: HourState = HourState.OPEN
    """What readers were told last, or are being told."""
    told_at: str = ""
    """ISO 8601, UTC."""
    settled: int = 0
    """``touched`` when the hour was found complete."""
    revision: int = 0
    """Number of times that ``told`` has changed."""
    announced: int = 0
    """The last revision whose marker and event are out."""
    confirmed: int = 0
    """The last revision whose marker was written again when no sweep with an earlier row was left."""
    counts: HourCounts = HourCounts()
    """When the hour was found complete last."""
    waits_for: str | None = None
    """A manifest that was not done when a sweep looked last: a hint."""

    @property
    def is_settled(self) -> bool:
        """Whether it was found complete, and nothing has touched it since."""
        return self.told == HourState.COMPLETE and self.touched == self.settled

    @property
    def state(self) -> HourState:
        """By this row alone: an hour that is complete, but was not found so yet, is still open or reopened."""
        if self.is_settled:
            return HourState.COMPLETE
        return HourState.OPEN if self.told == HourState.OPEN else HourState.REOPENED


def told_attributes(state: HourState, row: HourRow, counts: HourCounts, told_at: str) -> dict[str, Any]:
    """The attributes that change what is told about the hour of ``row``."""
    found = {"counts": asdict(counts), "settled": row.touched} if state == HourState.COMPLETE else {}
    return {"told": state, "told_at": told_at, "revision": row.revision + 1, **found}


def hour_row(partition: Partition, item: dict[str, Any]) -> HourRow:
    """The row of a DynamoDB item."""
    return HourRow(
        partition,
        touched=item.get("touched", 0),
        touched_at=item.get("touched_at", ""),
        told=HourState(item.get("told", HourState.OPEN)),
        told_at=item.get("told_at", ""),
        settled=item.get("settled", 0),
        revision=item.get("revision", 0),
        announced=item.get("announced", 0),
        confirmed=item.get("confirmed", 0),
        counts=HourCounts(**item.get("counts", {})),
        waits_for=item.get("waits_for"),
    )
