"""The job runs of an execution: engine, time, dollars, and where their logs are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from cli.deployed_stack import DeployedStack
from cli.documents import NightActual, NightRun
from cli.inspect.executions import Execution
from cli.inspect.run_logs import log_of_run
from lake.bills import MICRO
from lake.texts import read_instant

MAX_DAYS = 15
"""An execution takes at most 14 days (``overnight.asl.json``), and its last job run may end on the day after."""


def read_runs(stack: DeployedStack, execution: Execution) -> list[NightRun]:
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
        NightRun(
            job_run=row.id,
            engine=row.engine,
            started_at=row.started_at,
            ended_at=row.ended_at,
            minutes=round(row.seconds / 60, 1),
            dollars=row.micro_dollars / MICRO,
            datasets=tuple(sorted(share.dataset for share in row.shares if share.dataset)),
            log=log_of_run(stack, row.id, row.lane),
            state=row.state,
            reason=row.reason,
        )
        for row in found
    ]


def actual_of(runs: Sequence[NightRun], verdict: Mapping[str, Any]) -> NightActual:
    """The counts of the verdict document, which may be empty, with dollars and time of the job runs."""
    dollars = minutes = None
    if runs:
        begun = min(read_instant(run.started_at) for run in runs)
        ended = max(read_instant(run.ended_at) for run in runs)
        dollars, minutes = round(sum(run.dollars for run in runs), 6), round((ended - begun).total_seconds() / 60, 1)
    failed, opened, damaged = (verdict.get(name) for name in ("failed", "open", "damagedObjects"))
    return NightActual(failed, opened, damaged, len(runs), dollars, minutes)
