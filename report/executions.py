"""Plan beside outcome of an execution. Pure."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from lake.bills import MICRO
from lake.counted import format_count
from lake.format_values import format_instant
from report.tables import Cell, dollars, duration, number, size, table, text
from report.texts import safe

if TYPE_CHECKING:
    from collections.abc import Sequence

    from report.costs import JobRun
    from report.model import ExecutionFacts

BAD_OUTCOMES = ("FAILED",)
OPEN_OUTCOMES = ("OPEN", "not settled")
UNKNOWN = Cell("", "")


def outcome_of(execution: ExecutionFacts) -> str:
    """Outcome of its verdict; ``not settled`` without one."""
    return str((execution.verdict or {}).get("outcome", "not settled"))


def badge(outcome: str) -> str:
    """The outcome with its colour."""
    kind = "bad" if outcome in BAD_OUTCOMES else "waiting" if outcome in OPEN_OUTCOMES else "good"
    return f'<span class="badge {kind}">{safe(outcome)}</span>'


def plan_beside_outcome(execution: ExecutionFacts) -> str:
    """A table of what was planned and what has come."""
    plan, forecast, verdict = execution.plan or {}, execution.forecast or {}, execution.verdict or {}
    runs = execution.job_runs
    manifests = sum(verdict[name] for name in ("done", "failed", "open")) if verdict else None
    planned_dollars = plan["micro_dollars"] / MICRO if "micro_dollars" in plan else None
    planned_seconds = forecast["minutes"] * 60 if forecast else None
    lines = [
        ("engine", _word(str(plan.get("engine", ""))), _word(", ".join(sorted({run.engine for run in runs})))),
        ("runs; job runs", number(plan.get("runs")), number(len(runs))),
        ("manifests", number(plan.get("manifests")), number(manifests)),
        ("files", number(plan.get("files")), number(sum(run.files for run in runs) if runs else None)),
        ("bytes", size(plan.get("bytes")), size(sum(run.bytes for run in runs) if runs else None)),
        ("time", duration(planned_seconds), duration(_seconds(plan.get("planned_at"), runs))),
        ("end", _instant(forecast.get("end")), _instant(max((run.end for run in runs), default=None))),
        ("deadline", _instant(forecast.get("deadline")), _word(_kept(forecast.get("deadline"), runs))),
        ("dollars", dollars(planned_dollars), dollars(sum(run.micro_dollars for run in runs) / MICRO)),
        ("rows", UNKNOWN, number(verdict.get("rows"))),
        ("quarantined lines", UNKNOWN, number(verdict.get("rejects"))),
        ("unreadable files", UNKNOWN, number(verdict.get("failed_files"))),
        ("failed manifests", UNKNOWN, number(verdict.get("failed"))),
        ("damaged objects", UNKNOWN, number(verdict.get("damaged_objects"))),
    ]
    return table(("", "planned", "outcome"), [(text(name), planned, found) for name, planned, found in lines])


def _word(value: str) -> Cell:
    """Aligned with the numbers of its column."""
    return Cell(safe(value), value)


def _instant(value: str | float | None) -> Cell:
    return UNKNOWN if value is None else Cell(format_instant(value), format_instant(value))


def _seconds(planned_at: str | None, runs: Sequence[JobRun]) -> float | None:
    if planned_at is None or not runs:
        return None
    return max(run.end for run in runs) - datetime.fromisoformat(planned_at).timestamp()


def _kept(deadline: str | None, runs: Sequence[JobRun]) -> str:
    if deadline is None or not runs:
        return ""
    late = max(run.end for run in runs) - datetime.fromisoformat(deadline).timestamp()
    return "met" if late <= 0 else f"{format_count(round(late / 60), 'minute')} late"
