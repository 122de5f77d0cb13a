"""What a report shows: of one execution, or of one day. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from lake.texts import format_instant
from report.costs import CostFigures, JobRun
from report.figures import ManifestFigures

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
