"""The job runs of an execution: engine, time, dollars, and where their logs are."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from cli.format_values import read_instant
from cli.run_logs import log_of_run
from lake.bills import MICRO

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cli.deployed_stack import DeployedStack
    from cli.executions import Execution

MAX_DAYS = 15
"""An execution takes at most 14 days (``overnight.asl.json``), and its last job run may end on the day after."""


def read_runs(stack: DeployedStack, execution: Execution) -> list[dict[str, Any]]:
    """The job runs of an execution that have a cost row, in the order in which they began.

    Cost rows are kept by the day on which the job run has ended: those of the days of the execution are read.
    """
    if execution.started_at is None:
        return []
    first = execution.started_at.astimezone(UTC).date()
    last = (execution.ended_at or datetime.now(UTC)).astimezone(UTC).date() + timedelta(days=1)
    rows = stack.ledger.costs.of_days(first, min(last, first + timedelta(days=MAX_DAYS)))
    found = sorted((row for row in rows if row.execution == execution.name), key=lambda row: row.started_at)
    return [
        {
            "jobRun": row.id,
            "engine": row.engine,
            "startedAt": row.started_at,
            "endedAt": row.ended_at,
            "minutes": round(row.seconds / 60, 1),
            "dollars": row.micro_dollars / MICRO,
            "datasets": sorted(share.dataset for share in row.shares if share.dataset),
            "log": log_of_run(stack, row.id, row.lane),
        }
        for row in found
    ]


def sum_of(runs: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Their number, their dollars, and when the last one has ended; None where there is none."""
    if not runs:
        return {"jobRuns": 0, "dollars": None, "workMinutes": None}
    begun = min(read_instant(run["startedAt"]) for run in runs)
    ended = max(read_instant(run["endedAt"]) for run in runs)
    return {
        "jobRuns": len(runs),
        "dollars": round(sum(run["dollars"] for run in runs), 6),
        "workMinutes": round((ended - begun).total_seconds() / 60, 1),
    }
