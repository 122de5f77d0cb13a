"""What a report shows: of one execution, or of one day; with the costs of job runs. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from lake.bills import MICRO
from lake.ledger import CostRow, CostShare
from lake.texts import format_instant
from report.figures import ManifestFigures

GIGABYTE = 1_000_000_000


@dataclass(slots=True)
class CostPart:
    """A sum over parts of job runs."""

    micro_dollars: int = 0
    files: int = 0
    bytes: int = 0
    """Of the files that were converted, as stored."""

    def add(self, share: CostShare) -> None:
        self.micro_dollars += share.micro_dollars
        self.files += share.files
        self.bytes += share.bytes

    @property
    def dollars(self) -> float:
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


BY_ENGINES = "billed time of the engines, at price.* of the settings"
"""Where the costs come from on AWS."""


@dataclass(frozen=True, slots=True)
class ExecutionFacts:
    """One execution: its plan and its verdict, as the ledger and the documents have them."""

    name: str
    plan: Mapping[str, Any] | None
    """The part ``plan`` of its row; None: it was not planned."""
    forecast: Mapping[str, Any] | None
    """Of its plan's summary; None: the summary is gone."""
    verdict: Mapping[str, Any] | None
    """The part ``verdict`` of its row; None: it has none yet."""
    job_runs: tuple[JobRun, ...] = ()
    """All of them, whatever day they ended on."""


@dataclass(frozen=True, slots=True)
class AlarmChange:
    """An alarm has changed its state."""

    name: str
    at: str
    """ISO 8601, UTC."""
    state: str
    """OK, ALARM or INSUFFICIENT_DATA."""
    reason: str


@dataclass(frozen=True, slots=True)
class Report:
    """The content of a page."""

    title: str
    stack: str
    """Name of the CloudFormation stack."""
    period: str
    """What the figures are about, in a sentence."""
    made_at: str
    """ISO 8601, UTC."""
    figures: ManifestFigures
    costs: CostFigures
    executions: tuple[ExecutionFacts, ...]
    alarms: tuple[AlarmChange, ...] | None
    """Within the period, the latest first; None: they were not read."""
    message: str = ""
    """Of the verdict; empty: there is none."""
    metered: str = BY_ENGINES
    """Where the costs come from."""

    @classmethod
    def of_execution(
        cls,
        execution: ExecutionFacts,
        *,
        stack: str,
        made_at: str,
        figures: ManifestFigures,
        costs: CostFigures,
        alarms: tuple[AlarmChange, ...] | None,
        message: str,
        metered: str = BY_ENGINES,
    ) -> Report:
        """The report about one execution, whose manifests ``figures`` has counted."""
        return cls(
            title=_title(execution),
            stack=stack,
            period=f"Execution {execution.name}: files of its plan, by their current state.",
            made_at=made_at,
            figures=figures,
            costs=costs,
            executions=(execution,),
            alarms=alarms,
            message=message,
            metered=metered,
        )


def _title(execution: ExecutionFacts) -> str:
    planned_at = (execution.plan or {}).get("planned_at")
    return f"Execution of {format_instant(planned_at)[:16]}" if planned_at else f"Execution {execution.name}"
