"""What a report shows: of one execution, or of one day; with the costs of job runs. Pure."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from lake.engines.description import MICRO
from lake.ledger import CostRow, CostShare
from lake.texts import format_instant
from report.figures import ManifestFigures

GIGABYTE = 1_000_000_000


@dataclass(slots=True)
class CostPart:
    micro_dollars: int = 0
    files: int = 0
    bytes: int = 0
    """Size of the converted files, as stored."""

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
class CostFigures:
    by_lane_and_dataset: dict[tuple[str, str], CostPart]
    """The dearest first; the dataset is empty where a job run held no manifest."""
    job_runs: tuple[CostRow, ...]
    """In the order of their start."""
    total: CostPart


def cost_figures(rows: Iterable[CostRow]) -> CostFigures:
    runs = sorted(rows, key=lambda run: (run.start, run.id))
    parts: defaultdict[tuple[str, str], CostPart] = defaultdict(CostPart)
    total = CostPart()
    for run in runs:
        for share in run.shares:
            for part in (parts[run.lane, share.dataset], total):
                part.add(share)
    dearest_first = dict(sorted(parts.items(), key=lambda item: (-item[1].micro_dollars, item[0])))
    return CostFigures(dearest_first, tuple(runs), total)


NO_DATASET = "(no manifest)"
"""Shown for a job run that held no manifest: it failed early, or found everything done."""
BY_ENGINES = "billed time of the engines, at price.* of the settings"
"""Where the costs come from on AWS."""


@dataclass(frozen=True, slots=True)
class ExecutionFacts:
    name: str
    plan: Mapping[str, Any] | None
    """The part ``plan`` of its row; None: it was not planned."""
    forecast: Mapping[str, Any] | None
    """The forecast in its plan's summary; None: the summary is gone."""
    verdict: Mapping[str, Any] | None
    """The part ``verdict`` of its row; None: it has none yet."""
    job_runs: tuple[CostRow, ...] = ()
    """All of them, whatever day they ended on."""

    @property
    def title(self) -> str:
        planned_at = (self.plan or {}).get("planned_at")
        return f"Execution of {format_instant(planned_at)[:16]}" if planned_at else f"Execution {self.name}"

    @property
    def period(self) -> str:
        return f"Execution {self.name}: files of its plan, by their current state."


@dataclass(frozen=True, slots=True)
class AlarmChange:
    name: str
    at: str
    """ISO 8601, UTC."""
    state: str
    """OK, ALARM or INSUFFICIENT_DATA."""
    reason: str


@dataclass(frozen=True, slots=True)
class Report:
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
    """The message of the verdict; empty: there is no verdict."""
    metered: str = BY_ENGINES
    """Where the costs come from."""
    options: str = ""
    """The options by which a command finds the stack, with a space before them."""
