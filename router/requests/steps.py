"""What a request means for a manifest, by the state of its row. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from lake.ledger import ManifestRow, State
from lake.manifest import Lane
from lake.texts import advise_reprocess


class Step(StrEnum):
    """What to do with a manifest, or with the requested files of it."""

    ACT = "act"
    """Do what was requested: move its files to the stream lane, or queue it in its next generation."""
    POINT = "point"
    """Its files wait in the stream lane already: write one more pointer, because the first may be missing."""
    FOLLOW = "follow"
    """Continue with its successors, which hold its files."""
    LEAVE = "leave"


@dataclass(frozen=True, slots=True)
class NextStep:
    """The step; for LEAVE also how the manifest or its files are counted, and why, with what to do next."""

    step: Step
    count: str = ""
    """A count of the request's report."""
    why: str = ""


class Only(StrEnum):
    """Which of the selected manifests a reprocess queues again."""

    FAILED = "failed"
    """FAILED ones, and DONE ones with files that could not be read."""
    ALL = "all"
    """Every one that is FAILED or DONE."""


def next_promote_step(row: ManifestRow | None) -> NextStep:
    """The next step for a manifest, by a consistent read of its row; None: it has no row.

    A manifest that was tried before is promoted like any other: all attempts are left to its successors, files that
    cannot be read are detected again, and what the stream lane cannot convert goes back to the batch lane.
    """
    if row is None or row.state == State.ABANDONED:
        return NextStep(Step.LEAVE, "notRouted", "being routed right now: promote again in some minutes")
    if row.state in (State.SUPERSEDED, State.COLLECTED):
        return NextStep(Step.FOLLOW)
    if row.state == State.QUEUED and row.lane == Lane.STREAM:
        return NextStep(Step.POINT)
    if row.state == State.QUEUED and row.published is None:
        return NextStep(Step.ACT)
    if row.state == State.QUEUED:
        return NextStep(Step.LEAVE, "notMoved", "to be reprocessed by the batch lane: start overnight to do it now")
    return NextStep(Step.LEAVE, "tooLate", _why_too_late(row))


def _why_too_late(row: ManifestRow) -> str:
    if row.state == State.RUNNING:
        return f"being converted in the {row.lane} lane by run {row.owner}: wait for it"
    if row.state == State.PUBLISHING:
        return "being published: wait a moment"
    if row.state == State.DONE:
        return "converted already: explain shows the result"
    advice = advise_reprocess(row.id)
    return f"FAILED ({(row.reason or '').removesuffix(f'; {advice}')}): {advice}"


def next_reprocess_step(row: ManifestRow | None, only: Only, request: str) -> NextStep:
    """The next step for a manifest, by a consistent read of its row; None: it has no row.

    Only a manifest that has ended is queued, and once for each request: a repetition finds its id in the row.
    """
    if row is None or row.state == State.ABANDONED:
        return NextStep(Step.LEAVE, "unknown", "is not in the ledger: check the id; explain shows those of a file")
    if row.state in (State.SUPERSEDED, State.COLLECTED):
        return NextStep(Step.FOLLOW)
    if row.request == request:
        return NextStep(Step.LEAVE, "repeated", f"was queued by this request before and is {row.state} now")
    if row.open:
        return NextStep(Step.LEAVE, "open", _why_open(row))
    if row.state == State.FAILED or only == Only.ALL or has_unreadable_files(row):
        return NextStep(Step.ACT)
    return NextStep(Step.LEAVE, "converted", "is DONE and all of its files were read: pass all to convert it again")


def has_unreadable_files(row: ManifestRow) -> bool:
    """Whether a DONE manifest left files out, which are in the quarantine by reference."""
    return row.state == State.DONE and row.published is not None and row.published.totals.failed_files > 0


def _why_open(row: ManifestRow) -> str:
    if row.state == State.QUEUED:
        return f"waits in the {row.lane} lane already: its next run converts it"
    return f"is {row.state} by run {row.owner}: wait until it has ended"
