"""The engine of a run's next job run, and how late the run is then expected to end. Pure."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any

from lake.engines import Engine
from lake.time import iso_utc
from router.estimate.night import run_seconds

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from lake.bills import Bill
    from router.estimate.offer import Offer

NO_ROOM = ("Glue.ConcurrentRunsExceededException", "Glue.ResourceNumberLimitExceededException")
"""Refusals of Glue that the state machine has already repeated for hours."""


def found_no_capacity(engine: Engine, refusal: str, bill: Bill | None, *, failed: bool) -> bool:
    """Whether the last job run of a run did not get its workers.

    A job run of Flex that waits in vain fails, and Glue has metered no second of it; ``bill`` is None if it is unknown.
    """
    waited_in_vain = failed and engine is Engine.GLUE_FLEX and bill is not None and not bill.seconds
    return waited_in_vain or refusal.startswith(NO_ROOM)


def next_engine(run: Mapping[str, Any], engine: Engine, now: datetime, *, no_capacity: bool) -> Engine:
    """The engine of the next job run of a run; ``now`` is aware.

    A run that found no capacity, or that begins later than it must in order to end before the deadline, goes on on the
    dearer engine that its plan names. The first job run follows the same rule of time, in ``overnight.asl.json``.
    """
    if engine != run["engine"] or not run["fallback"]:
        return engine
    return Engine(run["fallback"]) if no_capacity or iso_utc(now) > run["beginBy"] else engine


def late_minutes(run: Mapping[str, Any], offers: Sequence[Offer], engine: Engine, left: float, now: datetime) -> float:
    """Minutes after the deadline at which a run is expected to end that begins its next job run ``now`` (aware).

    Parameters
    ----------
    left
        Share of the run's manifests that are open; with 0 it has ended.
    """
    (offer,) = (offer for offer in offers if offer.engine == engine)
    seconds = run_seconds(run["coreSeconds"] * left, run["workers"], offer) if left else 0.0
    late = (now - datetime.fromisoformat(run["deadline"])).total_seconds() + seconds
    return round(max(0.0, late) / 60, 1) if left else 0.0
