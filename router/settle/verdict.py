"""The verdict on an execution. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import TYPE_CHECKING

from lake.ledger import ManifestRow, State
from lake.settings import NotifyQuarantine

if TYPE_CHECKING:
    from collections.abc import Iterable

    from router.settle.published import DamagedObject, PublishedManifest

PUBLISHER_PRESUMED_DEAD_AFTER = timedelta(minutes=10)
"""A manifest that has been PUBLISHING for longer is not being worked on: the next claim, plan or sweep finishes it."""
PERMISSION = re.compile(r"\b(?:dynamodb|glue|kms|s3):[A-Z]\w+")
"""An IAM action, as the reason of a manifest names the one that is missing."""


class ExecutionOutcome(StrEnum):
    """Outcome of an execution."""

    SUCCEEDED = "SUCCEEDED"
    """All its manifests are DONE, and every line became a row."""
    SUCCEEDED_WITH_QUARANTINE = "SUCCEEDED_WITH_QUARANTINE"
    """All its manifests are DONE; lines or whole files are in the quarantine."""
    FAILED = "FAILED"
    """A manifest is FAILED, or is open and no process works on it; or a published object is missing or differs."""
    EMPTY = "EMPTY"
    """It had no manifests."""
    OPEN = "OPEN"
    """A manifest is still being worked on: ask again later."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """Numbers of manifests by state, and totals of the DONE ones."""

    outcome: ExecutionOutcome
    done: int
    failed: int
    open: int
    rows: int
    """Published rows."""
    rejects: int
    """Quarantined lines."""
    failed_files: int
    """Files that could not be read as a whole."""
    damaged_objects: int
    """Objects of DONE manifests that are missing or differ from what was published."""
    message: str
    """A sentence for people."""


def judge(rows: Iterable[ManifestRow], published: Iterable[PublishedManifest], now: datetime) -> Verdict:
    """The verdict at ``now`` (aware), by the current rows and by what the DONE ones have published."""
    published = list(published)
    rows = list(rows)
    done = sum(row.state == State.DONE for row in rows)
    failed = [row for row in rows if row.state == State.FAILED]
    open_rows = [row for row in rows if row.open]
    working = sum(is_worked_on(row, now) for row in open_rows)
    totals = {
        name: sum(getattr(manifest, name) for manifest in published)
        for name in ("rows", "rejects", "failed_files", "damaged_objects")
    }
    damaged = [item for manifest in published for item in manifest.damaged]
    if not rows:
        outcome, message = ExecutionOutcome.EMPTY, "nothing was waiting"
    elif working:
        outcome, message = ExecutionOutcome.OPEN, f"{working} manifests are still being worked on"
    elif failed or open_rows or damaged:
        outcome, message = ExecutionOutcome.FAILED, _failure(failed, open_rows, damaged, totals["damaged_objects"])
    else:
        quarantined = totals["rejects"] or totals["failed_files"]
        outcome = ExecutionOutcome.SUCCEEDED_WITH_QUARANTINE if quarantined else ExecutionOutcome.SUCCEEDED
        message = f"all {done} manifests are done: {totals['rows']} rows"
    if totals["rejects"]:
        message += f"; {totals['rejects']} lines could not become a row and are in the quarantine"
    if totals["failed_files"]:
        message += f"; {totals['failed_files']} files could not be read and are in the quarantine by reference"
    return Verdict(outcome, done, len(failed), len(open_rows), **totals, message=message)


def should_notify(verdict: Verdict, notify_quarantine: str) -> bool:
    """Whether a person is told of the verdict.

    Parameters
    ----------
    notify_quarantine
        The setting ``alarms.notify_quarantine``. It decides about executions that succeeded; all others are reported.
    """
    if verdict.outcome == ExecutionOutcome.SUCCEEDED_WITH_QUARANTINE:
        if notify_quarantine == NotifyQuarantine.NEVER:
            return False
        return notify_quarantine == NotifyQuarantine.LINES or verdict.failed_files > 0
    return verdict.outcome not in (ExecutionOutcome.SUCCEEDED, ExecutionOutcome.EMPTY)


def is_worked_on(row: ManifestRow, now: datetime) -> bool:
    """Whether a process may be working on it: a live lease, or a publish that began recently."""
    if row.has_live_lease(now):
        return True
    return (
        row.state == State.PUBLISHING and now - datetime.fromisoformat(row.changed_at) < PUBLISHER_PRESUMED_DEAD_AFTER
    )


def _failure(
    failed: list[ManifestRow], open_rows: list[ManifestRow], damaged: list[DamagedObject], damaged_objects: int
) -> str:
    parts = []
    if damaged:
        parts.append(
            f"{damaged_objects} published objects are damaged (first: {damaged[0].uri} {damaged[0].problem}): "
            "the verdict document names them; find out who changed them, then restore them or run "
            f"'hybrid-router reprocess --manifest {damaged[0].manifest} --all'"
        )
    if failed:
        parts.append(f"{len(failed)} manifests failed (first: {failed[0].id}, {failed[0].reason})")
    if open_rows:
        # A missing permission stops every manifest of a run, so the first reason that names one explains them all.
        first = min(open_rows, key=_order_of_reason)
        why = f", {first.reason}" if first.reason else ""
        parts.append(
            f"{len(open_rows)} manifests are not done (first: {first.id}, {first.state}{why}): "
            "start overnight again to convert them"
        )
    return "; ".join(parts)


def _order_of_reason(row: ManifestRow) -> int:
    """0 if the reason names a permission, 1 for any other reason, 2 without a reason."""
    if row.reason is None:
        return 2
    return 0 if PERMISSION.search(row.reason) else 1
