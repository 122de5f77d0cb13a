"""What a night has come to: pure."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import TYPE_CHECKING

from lake.ledger import ManifestRow, State

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

PUBLISH_TIME = timedelta(minutes=10)
"""A manifest that publishes for longer has lost its publisher; whoever comes next rolls it forward."""


class ExecutionOutcome(StrEnum):
    """Of an execution."""

    SUCCEEDED = "SUCCEEDED"
    FAILED = "FAILED"
    EMPTY = "EMPTY"
    OPEN = "OPEN"
    """Somebody is still working: ask again."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """Counts of manifests, and of what those that are DONE hold."""

    outcome: ExecutionOutcome
    done: int
    failed: int
    open: int
    rows: int
    rejects: int
    failed_files: int
    message: str
    """A sentence for people."""


def judge(rows: Iterable[ManifestRow], results: Iterable[Mapping[str, int]], now: datetime) -> Verdict:
    """The verdict of the ledger's rows and the DONE manifests' result documents."""
    rows = list(rows)
    done = sum(row.state == State.DONE for row in rows)
    failed = [row for row in rows if row.state == State.FAILED]
    open_rows = [row for row in rows if row.open]
    working = sum(is_worked_on(row, now) for row in open_rows)
    totals = {"rows": 0, "rejects": 0, "failed_files": 0}
    for result in results:
        for name in totals:
            totals[name] += result[name]
    if not rows:
        outcome, message = ExecutionOutcome.EMPTY, "nothing was waiting"
    elif working:
        outcome, message = ExecutionOutcome.OPEN, f"{working} manifests are still being worked on"
    elif failed or open_rows:
        outcome, message = ExecutionOutcome.FAILED, _failure(failed, open_rows)
    else:
        outcome, message = ExecutionOutcome.SUCCEEDED, f"all {done} manifests are done: {totals['rows']} rows"
    if totals["failed_files"]:
        message += f"; {totals['failed_files']} files could not be read and are in the quarantine by reference"
    return Verdict(outcome, done, len(failed), len(open_rows), **totals, message=message)


def is_worked_on(row: ManifestRow, now: datetime) -> bool:
    """A live lease, or a publish that began a short time ago."""
    if row.has_live_lease(now):
        return True
    return row.state == State.PUBLISHING and now - datetime.fromisoformat(row.changed_at) < PUBLISH_TIME


def _failure(failed: list[ManifestRow], open_rows: list[ManifestRow]) -> str:
    parts = []
    if failed:
        parts.append(f"{len(failed)} manifests failed (first: {failed[0].id}, {failed[0].reason})")
    if open_rows:
        first = open_rows[0]
        why = f", {first.reason}" if first.reason else ""
        parts.append(
            f"{len(open_rows)} manifests are not done (first: {first.id}, {first.state}{why}): "
            "start overnight again to convert them"
        )
    return "; ".join(parts)
