"""The last days, each with what its executions came to. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta

DAYS = 30
"""Days of the page, today included."""
MAX_LISTED = 5
"""Executions of one day that the page names: those that failed before others, and of these the latest."""


@dataclass(frozen=True, slots=True)
class SettledExecution:
    """What the page shows of one execution; ``settle`` stores it in the ledger."""

    name: str
    planned_at: str
    """ISO 8601, UTC; of ``settled_at`` too."""
    settled_at: str
    outcome: str
    message: str
    bytes: int
    rows: int
    rejects: int
    failed_files: int
    """Files that could not be read."""
    not_done: int
    """Manifests that have failed or are open."""
    late_minutes: int
    """After its deadline."""

    @property
    def failed(self) -> bool:
        """Whether it did not do what it was planned for."""
        return self.outcome == "FAILED"


@dataclass(slots=True)
class Day:
    """A day (UTC) and the executions that were planned on it."""

    day: date
    micro_dollars: int = 0
    """Of the job runs of both lanes that ended on it."""
    outcomes: Counter[str] = field(default_factory=Counter)
    listed: list[SettledExecution] = field(default_factory=list)
    bytes: int = 0
    rows: int = 0
    rejects: int = 0
    failed_files: int = 0
    not_done: int = 0
    late_minutes: int = 0
    """The largest of its executions."""

    @property
    def executions(self) -> int:
        """All of them."""
        return self.outcomes.total()

    def add(self, item: SettledExecution) -> None:
        """Add an execution; they come in the order in which they were planned."""
        self.outcomes[item.outcome] += 1
        self.bytes += item.bytes
        self.rows += item.rows
        self.rejects += item.rejects
        self.failed_files += item.failed_files
        self.not_done += item.not_done
        self.late_minutes = max(self.late_minutes, item.late_minutes)
        self.listed.append(item)
        if len(self.listed) > MAX_LISTED:
            self.listed.remove(next((one for one in self.listed if not one.failed), self.listed[0]))


def first_day(now: datetime) -> date:
    """The oldest day of the page; ``now`` is aware."""
    return now.astimezone(UTC).date() - timedelta(days=DAYS - 1)


def last_days(settled: Iterable[Mapping[str, object]], micro_dollars: Mapping[str, int], now: datetime) -> list[Day]:
    """The days, the newest first, from the first one of which something is known; one without executions is a day too.

    Parameters
    ----------
    settled
        What ``Executions.settled`` has, oldest first.
    micro_dollars
        What ``Costs.day_sums`` has.
    now
        Aware.
    """
    days = {}
    for number in range(DAYS):
        day = first_day(now) + timedelta(days=number)
        days[str(day)] = Day(day, micro_dollars.get(str(day), 0))
    for facts in settled:
        item = SettledExecution(**facts)  # type: ignore[arg-type]
        if item.planned_at[:10] in days:
            days[item.planned_at[:10]].add(item)
    found = list(days.values())
    while len(found) > 1 and not found[0].executions and not found[0].micro_dollars:
        found.pop(0)
    return found[::-1]
