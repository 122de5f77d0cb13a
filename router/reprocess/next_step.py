"""What a reprocess means for a manifest, by its row. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from lake.ledger import State
from router.reprocess.request import Only

if TYPE_CHECKING:
    from lake.ledger import ManifestRow


class ReprocessStep(StrEnum):
    """What to do with a manifest."""

    QUEUE = "queue"
    """Queue it in its next generation."""
    FOLLOW = "follow"
    """Continue with its successors, which hold its files."""
    LEAVE = "leave"


@dataclass(frozen=True, slots=True)
class NextReprocessStep:
    """The step; for LEAVE also how the manifest is counted, and a message that says why and what to do next."""

    step: ReprocessStep
    count: str = ""
    """One of ``router.reprocess.report.COUNTS``."""
    why: str = ""


def next_reprocess_step(row: ManifestRow | None, only: Only, request: str) -> NextReprocessStep:
    """The next step for a manifest, by a consistent read of its row; None: it has no row.

    Only a manifest that has ended is queued, and once for each request: a repetition finds its id in the row.
    """
    if row is None or row.state == State.ABANDONED:
        return NextReprocessStep(
            ReprocessStep.LEAVE, "unknown", "is not in the ledger: check the id; explain shows those of a file"
        )
    if row.state == State.SUPERSEDED:
        return NextReprocessStep(ReprocessStep.FOLLOW)
    if row.request == request:
        return NextReprocessStep(
            ReprocessStep.LEAVE, "repeated", f"was queued by this request before and is {row.state} now"
        )
    if row.open:
        return NextReprocessStep(ReprocessStep.LEAVE, "open", _why_open(row))
    if row.state == State.FAILED or only == Only.ALL or has_unreadable_files(row):
        return NextReprocessStep(ReprocessStep.QUEUE)
    return NextReprocessStep(
        ReprocessStep.LEAVE, "converted", "is DONE and all of its files were read: pass all to convert it again"
    )


def has_unreadable_files(row: ManifestRow) -> bool:
    """Whether a DONE manifest left files out, which are in the quarantine by reference."""
    return row.state == State.DONE and row.published is not None and row.published.totals.failed_files > 0


def _why_open(row: ManifestRow) -> str:
    if row.state == State.QUEUED:
        return f"waits in the {row.lane} lane already: its next run converts it"
    return f"is {row.state} by run {row.owner}: wait until it has ended"
