"""Whether what is left of an execution goes on on another engine, so that it ends before its deadline. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from lake.engines import Engine
from router.estimate.choose import MARGIN, run_sizes
from router.estimate.night import last_end, run_dollars
from router.estimate.offer import LONG_POLL_SECONDS, MAX_CAPACITY_WAIT_SECONDS

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    from router.estimate.offer import Offer


class Cause(StrEnum):
    """Why a switch is considered; completes the sentence "switched because ..."."""

    NO_CAPACITY = "spare capacity did not come"
    BEHIND = "its runs take longer than planned"


@dataclass(frozen=True, slots=True)
class NightLeft:
    """What an execution has left when a job run of it has ended."""

    engine: Engine
    workers: int
    """Of each run, the driver's included."""
    concurrency: int
    """Runs side by side."""
    core_seconds: tuple[float, ...]
    """Work of each run that may not be done, in seconds of one vCPU of Glue, in the order in which they start."""
    seconds: float
    """Until the deadline; negative: it is over."""
    spent_dollars: float
    """Expected price of what is done."""


@dataclass(frozen=True, slots=True)
class Way:
    """One way to do what is left."""

    engine: Engine
    workers: int
    seconds: float
    """Until the last run ends."""
    dollars: float
    """Expected price of the whole execution."""


@dataclass(frozen=True, slots=True)
class Decision:
    """Whether to switch, and how late the execution is then expected to end."""

    late_seconds: float
    """After the deadline; 0: in time."""
    switch: Way | None = None
    """None: it goes on as it is."""
    refused: Way | None = None
    """The cheapest switch, where the budget does not allow any."""


def decide_switch(
    left: NightLeft,
    cause: Cause,
    offers: Iterable[Offer],
    allowed: Collection[Engine],
    *,
    emr_vcpus: float,
    budget_dollars: float,
    retry_seconds: float | None,
) -> Decision:
    """The cheapest way that ends in time, else the fastest, once going on as it is does not promise to end in time.

    Without spare capacity the execution waits for it as long as another engine could still do everything in time after
    one more wait. An engine with spare capacity is never switched to.

    Parameters
    ----------
    emr_vcpus
        Room on EMR Serverless. On Glue an execution has the DPUs that its plan takes.
    budget_dollars
        Dollars that the whole execution may be expected to cost after a switch; 0: no limit.
    retry_seconds
        Pause before another try on the same engine; None: there is none, the run would be abandoned.
    """
    known = {offer.engine: offer for offer in offers}
    stay = _way(left, known[left.engine], left.workers, left.concurrency)
    ways = [way for engine in allowed if engine in known for way in _ways(left, known[engine], emr_vcpus)]
    affordable = [way for way in ways if not budget_dollars or way.dollars <= budget_dollars]
    waiting = 0.0
    if cause is Cause.NO_CAPACITY and retry_seconds is not None:
        waiting = retry_seconds + MAX_CAPACITY_WAIT_SECONDS + LONG_POLL_SECONDS
    late = max(0.0, stay.seconds - left.seconds)
    if not ways:
        return Decision(late)
    limit = left.seconds * (1 - MARGIN)
    fastest = min(affordable or ways, key=lambda way: (way.seconds, way.dollars))
    if cause is Cause.NO_CAPACITY:
        stays = retry_seconds is not None and waiting + fastest.seconds <= limit
    else:
        stays = stay.seconds <= left.seconds or fastest.seconds >= stay.seconds
    if stays:
        return Decision(late)
    if not affordable:
        return Decision(max(0.0, waiting + stay.seconds - left.seconds), refused=min(ways, key=_price))
    fitting = [way for way in affordable if way.seconds <= limit]
    best = min(fitting, key=_price) if fitting else fastest
    return Decision(max(0.0, best.seconds - left.seconds), switch=best)


def _ways(left: NightLeft, offer: Offer, emr_vcpus: float) -> Iterator[Way]:
    if offer.engine in (left.engine, Engine.GLUE_FLEX):
        return
    side_by_side = min(left.concurrency, max(len(left.core_seconds), 1))
    if offer.engine is Engine.EMR_SERVERLESS:
        room = emr_vcpus
    else:
        # On another engine until now, the execution has not shown that Glue has room for larger runs.
        factor = left.concurrency if left.engine.on_glue else side_by_side
        room = factor * left.workers * offer.quota_units
    for workers in run_sizes(offer, left.workers, room):
        fits = int(room // (workers * offer.quota_units))
        # Glue refuses what has no room; EMR Serverless lets it wait in its queue.
        if fits >= side_by_side or (fits and offer.engine is Engine.EMR_SERVERLESS):
            yield _way(left, offer, workers, min(fits, side_by_side))


def _way(left: NightLeft, offer: Offer, workers: int, concurrency: int) -> Way:
    dollars = left.spent_dollars + sum(run_dollars(work, workers, offer) for work in left.core_seconds)
    return Way(offer.engine, workers, last_end(left.core_seconds, workers, concurrency, offer), dollars)


def _price(way: Way) -> tuple[float, float]:
    return way.dollars, way.seconds
