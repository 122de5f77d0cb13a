"""What the job runs have cost, by lane and dataset, and when they ran. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from lake.bills import MICRO
from lake.ledger import CostRow, CostShare

GIGABYTE = 1_000_000_000


@dataclass(slots=True)
class CostPart:
    """A sum over parts of job runs."""

    micro_dollars: int = 0
    files: int = 0
    bytes: int = 0
    """Of the files that were converted, as stored."""

    def add(self, share: CostShare) -> None:
        """Add a part of a job run."""
        self.micro_dollars += share.micro_dollars
        self.files += share.files
        self.bytes += share.bytes

    @property
    def dollars(self) -> float:
        """The sum."""
        return self.micro_dollars / MICRO

    @property
    def dollars_per_gb(self) -> float | None:
        """For one GB of input; None: nothing was converted."""
        return self.dollars / (self.bytes / GIGABYTE) if self.bytes else None


@dataclass(frozen=True, slots=True)
class JobRun:
    """A job run, or an interval of the streaming job."""

    id: str
    lane: str
    engine: str
    start: float
    """Seconds since the epoch; of ``end`` too."""
    end: float
    micro_dollars: int
    files: int
    bytes: int
    execution: str | None
    state: str = ""
    """How it ended, such as SUCCEEDED or FAILED; empty: an interval of the streaming job."""
    reason: str = ""
    """Why it did not succeed."""


@dataclass(frozen=True, slots=True)
class CostFigures:
    """Costs of some job runs."""

    by_lane_and_dataset: dict[tuple[str, str], CostPart]
    """The dearest first; the dataset is empty where a job run held no manifest."""
    job_runs: tuple[JobRun, ...]
    """In the order of their start."""
    total: CostPart


def cost_figures(rows: Iterable[CostRow]) -> CostFigures:
    """Add up cost rows."""
    parts: defaultdict[tuple[str, str], CostPart] = defaultdict(CostPart)
    total, runs = CostPart(), []
    for row in rows:
        start, end = (datetime.fromisoformat(text).timestamp() for text in (row.started_at, row.ended_at))
        files, size = sum(share.files for share in row.shares), sum(share.bytes for share in row.shares)
        facts = (row.id, str(row.lane), row.engine, start, end, row.micro_dollars, files, size, row.execution)
        runs.append(JobRun(*facts, row.state, row.reason))
        for share in row.shares:
            for part in (parts[str(row.lane), share.dataset], total):
                part.add(share)
    dearest_first = dict(sorted(parts.items(), key=lambda item: (-item[1].micro_dollars, item[0])))
    return CostFigures(dearest_first, tuple(sorted(runs, key=lambda run: (run.start, run.id))), total)
