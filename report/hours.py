"""Whether the hours of a dataset are complete. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import TYPE_CHECKING

from lake.ledger import State
from report.figures import Counts

if TYPE_CHECKING:
    from lake.ledger import ManifestRow

GRACE = timedelta(minutes=15)
"""After the end of an hour, for the events of its last files: one that waits longer raises the alarm LateArrivals."""
ONE_HOUR = timedelta(hours=1)


class HourState(StrEnum):
    """What a reader of an hour can rely on."""

    OPEN = "open"
    """It has not ended for long enough, or a manifest of it is open: rows are still to come."""
    FAILED = "failed"
    """No manifest of it is open, and one has FAILED: its files are missing until they are converted again."""
    COMPLETE = "complete"
    """Each recorded file of it is published or in the quarantine."""


@dataclass(slots=True)
class Hour:
    """One UTC hour of one dataset."""

    stamp: str
    """``YYYY-MM-DDTHH``, UTC."""
    counts: Counts = field(default_factory=Counts)
    published_at: str = ""
    """ISO 8601, UTC: the last publication; empty: there was none."""

    def add(self, row: ManifestRow) -> None:
        """Add the current row of a manifest of this hour."""
        totals = row.published.totals if row.state == State.DONE and row.published is not None else None
        self.counts.add(row, totals)
        if row.state == State.DONE and row.finished_at is not None:
            self.published_at = max(self.published_at, row.finished_at)

    def state(self, now: datetime) -> HourState:
        """Its state at ``now`` (aware). A file that is recorded later opens a complete hour again."""
        end = datetime.fromisoformat(f"{self.stamp}:00:00+00:00") + ONE_HOUR
        if self.counts.open or now < end + GRACE:
            return HourState.OPEN
        return HourState.FAILED if self.counts.failed else HourState.COMPLETE


def hours_between(first: str, last: str) -> dict[str, Hour]:
    """The hours from ``first`` to ``last`` (``YYYY-MM-DDTHH``), both inclusive, in order."""
    hour, end = (datetime.strptime(stamp, "%Y-%m-%dT%H") for stamp in (first, last))
    found = {}
    while hour <= end:
        stamp = f"{hour:%Y-%m-%dT%H}"
        found[stamp] = Hour(stamp)
        hour += ONE_HOUR
    return found
