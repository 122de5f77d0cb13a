"""How far an execution of ``overnight`` is: its manifests, and the job runs that work on them now."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from cli.deployed_stack import DeployedStack
from cli.documents import NightProgress, RunProgress
from lake.ledger import State
from lake.manifest import Lane
from lake.successors import follow
from lake.texts import format_count, format_size

MAX_NAMED_RUNS = 3
"""Job runs that one line names, those with the most manifests at work."""


def read_progress(stack: DeployedStack, summary: Mapping[str, Any]) -> NightProgress:
    """Count the manifests of a plan by their current rows; a superseded one is replaced by its successors.

    ``summary`` is the document of the plan. Raises botocore's errors.
    """
    states: Counter[State] = Counter()
    done: Counter[str] = Counter()
    running: Counter[str] = Counter()
    size = size_done = 0
    for page in follow(stack.ledger, summary.get("manifestIds", [])):
        for row in (row for _, row in page if row is not None and row.lane == Lane.BATCH):
            if row.state not in (State.DONE, State.FAILED) and not row.open:
                continue
            states[row.state] += 1
            size += row.bytes
            if row.state == State.DONE:
                size_done += row.bytes
                done[row.owner or ""] += 1
            elif row.open and row.state != State.QUEUED:
                running[row.owner or ""] += 1
    runs = (RunProgress(run, done[run], manifests) for run, manifests in running.most_common())
    at_work = running.total()
    return NightProgress(
        states.total(), states[State.DONE], at_work, states[State.FAILED], size, size_done, tuple(runs)
    )


def format_progress(progress: NightProgress) -> str:
    """One line: what is done, at work and failed, and which job runs are at work."""
    parts = [
        f"{progress.done:,} of {format_count(progress.manifests, 'manifest')} done, "
        f"{format_size(progress.bytes_done)} of {format_size(progress.bytes)}"
    ]
    if progress.running:
        parts.append(f"{progress.running:,} at work")
    if progress.failed:
        parts.append(f"{progress.failed:,} failed")
    runs = [f"{run.job_run} ({run.done:,} done, {run.running:,} at work)" for run in progress.job_runs[:MAX_NAMED_RUNS]]
    more = len(progress.job_runs) - len(runs)
    if more > 0:
        runs.append(format_count(more, "more job run"))
    return ", ".join(parts) + (f": {', '.join(runs)}" if runs else "")
