"""What promoting a file means for its manifest, by the state of the manifest's row. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from lake.commands import advise_reprocess
from lake.ledger import State
from lake.manifest import Lane

if TYPE_CHECKING:
    from lake.ledger import ManifestRow


class PromoteStep(StrEnum):
    """What to do with the requested files of a manifest."""

    MOVE = "move"
    """Supersede the manifest: the files go to the stream lane."""
    POINT = "point"
    """They wait in the stream lane already: write one more pointer, because the first may be missing."""
    FOLLOW = "follow"
    """Continue with the manifest's successors."""
    LEAVE = "leave"
    """The files stay where they are."""


@dataclass(frozen=True, slots=True)
class NextPromoteStep:
    """The step; for LEAVE also how the files are counted, and a message that says why and what to do next."""

    step: PromoteStep
    count: str = ""
    """One of ``router.promote.report.COUNTS``."""
    why: str = ""


def next_promote_step(row: ManifestRow | None) -> NextPromoteStep:
    """The next step for a manifest, by a consistent read of its row; None: it has no row.

    A manifest that was tried before is promoted like any other: all attempts are left to its successors, files that
    cannot be read are detected again, and what the stream lane cannot convert goes back to the batch lane.
    """
    if row is None or row.state == State.ABANDONED:
        return NextPromoteStep(PromoteStep.LEAVE, "notRouted", "being routed right now: promote again in some minutes")
    if row.state == State.SUPERSEDED:
        return NextPromoteStep(PromoteStep.FOLLOW)
    if row.state == State.QUEUED and row.lane == Lane.STREAM:
        return NextPromoteStep(PromoteStep.POINT)
    if row.state == State.QUEUED and row.published is None:
        return NextPromoteStep(PromoteStep.MOVE)
    if row.state == State.QUEUED:
        return NextPromoteStep(
            PromoteStep.LEAVE, "notMoved", "to be reprocessed by the batch lane: start overnight to do it now"
        )
    return NextPromoteStep(PromoteStep.LEAVE, "tooLate", _why_too_late(row))


def _why_too_late(row: ManifestRow) -> str:
    if row.state == State.RUNNING:
        return f"being converted in the {row.lane} lane by run {row.owner}: wait for it"
    if row.state == State.PUBLISHING:
        return "being published: wait a moment"
    if row.state == State.DONE:
        return "converted already: explain shows the result"
    advice = advise_reprocess(row.id)
    return f"FAILED ({(row.reason or '').removesuffix(f'; {advice}')}): {advice}"
