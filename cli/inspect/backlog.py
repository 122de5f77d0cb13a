"""The backlog: open manifests by lane and dataset, and how many did not get through."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, Any

from cli.format_values import read_instant
from lake.ledger import Failure, State
from lake.ledger.manifest_row import OPEN_STATES
from lake.manifest import Lane

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from lake.ledger import Ledger, ManifestRow

LISTS = tuple((lane, state) for lane in Lane for state in (*OPEN_STATES, *Failure))


@dataclass(slots=True)
class DatasetBacklog:
    """Open manifests of one dataset in one lane."""

    lane: Lane
    dataset: str
    manifests: int = 0
    files: int = 0
    bytes: int = 0
    oldest: str | None = None
    """When the oldest of them was made, ISO 8601, UTC."""
    states: dict[str, int] = field(default_factory=lambda: dict.fromkeys(map(str, OPEN_STATES), 0))
    blocked: int = 0
    """QUEUED with a reason: an attempt ended without a result, and the next one has not begun."""

    def add(self, row: ManifestRow) -> None:
        """Add an open manifest."""
        self.manifests += 1
        self.files += row.files
        self.bytes += row.bytes
        self.oldest = min(self.oldest or row.created_at, row.created_at)
        self.states[row.state] += 1
        self.blocked += row.state == State.QUEUED and row.reason is not None

    def to_json(self, now: datetime) -> dict[str, Any]:
        """The object of this dataset in the document of ``status``."""
        return {
            "lane": self.lane.value,
            "dataset": self.dataset,
            "manifests": self.manifests,
            "files": self.files,
            "bytes": self.bytes,
            "oldest": self.oldest,
            "oldestSeconds": round((now - read_instant(self.oldest)).total_seconds()) if self.oldest else None,
            "states": self.states,
            "blocked": self.blocked,
        }


@dataclass(frozen=True, slots=True)
class Open:
    """What is open and what did not get through, as the index has it."""

    backlogs: tuple[DatasetBacklog, ...]
    """By lane and dataset."""
    failed: int
    """Manifests."""
    unreadable: int
    """DONE manifests with files that could not be read."""
    complete: bool
    """False: a list is longer than the limit, so that every number is a lower bound."""


def read_open(ledger: Ledger, limit: int) -> Open:
    """Count what the index lists, at most ``limit`` manifests of each state and lane; the lists are read in parallel.

    Raises botocore's errors.
    """
    with ThreadPoolExecutor(len(LISTS)) as pool:
        pages = list(pool.map(lambda item: list(islice(_rows(ledger, *item), limit + 1)), LISTS))
    backlogs: dict[tuple[Lane, str], DatasetBacklog] = {}
    failures = dict.fromkeys(Failure, 0)
    for (lane, state), rows in zip(LISTS, pages, strict=True):
        if isinstance(state, Failure):
            failures[state] += len(rows[:limit])
            continue
        for row in rows[:limit]:
            backlogs.setdefault((lane, row.partition.dataset), DatasetBacklog(lane, row.partition.dataset)).add(row)
    return Open(
        tuple(backlogs[key] for key in sorted(backlogs)),
        failures[Failure.FAILED],
        failures[Failure.UNREADABLE],
        all(len(rows) <= limit for rows in pages),
    )


def _rows(ledger: Ledger, lane: Lane, state: State | Failure) -> Iterator[ManifestRow]:
    if isinstance(state, Failure):
        return ledger.failures.of_lane(lane, state)
    return ledger.manifests.open(lane, state)
