"""What promoting means for a manifest, by its row. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from lake.ledger import State
from lake.manifest import Lane

if TYPE_CHECKING:
    from lake.ledger import ManifestRow


class Step(StrEnum):
    """What to do with the wanted files of a manifest."""

    MOVE = "move"
    """Supersede it: they go to the stream lane."""
    POINT = "point"
    """They wait in the stream lane: a pointer once more, the one before may be missing."""
    FOLLOW = "follow"
    """Its successors hold them."""
    LEAVE = "leave"


@dataclass(frozen=True, slots=True)
class Decision:
    """The step; of files that are left where they are also how they count, why, and what to do next."""

    step: Step
    count: str = ""
    why: str = ""


def decide(row: ManifestRow | None) -> Decision:
    """By the manifest's row, read consistently.

    A manifest that has been tried is promoted like any other: its successors have all their tries and still show that
    their files have been tried; files that cannot be read are found again; what the stream cannot convert goes back to
    the batch lane.
    """
    if row is None or row.state == State.ABANDONED:
        return Decision(Step.LEAVE, "notRouted", "being routed right now: promote again in some minutes")
    if row.state == State.SUPERSEDED:
        return Decision(Step.FOLLOW)
    if row.state == State.QUEUED and row.lane == Lane.STREAM:
        return Decision(Step.POINT)
    if row.state == State.QUEUED and row.published is None:
        return Decision(Step.MOVE)
    if row.state == State.QUEUED:
        return Decision(Step.LEAVE, "notMoved", "to be reprocessed by the batch lane: start overnight to do it now")
    return Decision(Step.LEAVE, "tooLate", _too_late(row))


def _too_late(row: ManifestRow) -> str:
    if row.state == State.RUNNING:
        return f"being converted in the {row.lane} lane by run {row.owner}: wait for it"
    if row.state == State.PUBLISHING:
        return "being published: wait a moment"
    if row.state == State.DONE:
        return "converted already: explain shows the result"
    return f"FAILED ({row.reason}): remove the cause, then put the file once more"
