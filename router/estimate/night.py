"""The duration and cost of a night: so much work, on so many runs side by side, of so many workers each. Pure."""

from __future__ import annotations

import heapq
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lake.engines import Engine
    from router.estimate.offer import Offer

DRIVERS = 1
"""Workers of a run that convert nothing."""


@dataclass(frozen=True, slots=True)
class Night:
    """One way to do a night's work."""

    engine: Engine
    worker_type: str
    workers: int
    """Workers of each run, the driver's included."""
    concurrency: int
    """Runs side by side."""
    runs: int
    seconds: float
    """From the start to the end of the last run."""
    dollars: float
    """Billed time of the runs only."""


def run_seconds(core_seconds: float, workers: int, offer: Offer) -> float:
    """From the start of a run to the end that Step Functions sees; ``core_seconds`` is its work on Glue's vCPU."""
    lived = offer.wait_seconds + offer.start_seconds + _busy_seconds(core_seconds, workers, offer)
    return lived + offer.times.poll_delay(lived)


def billed_seconds(core_seconds: float, workers: int, offer: Offer) -> float:
    """For which each worker of a run is billed: from the first task to the end, or from its start if that is billed."""
    used = _busy_seconds(core_seconds, workers, offer) + (offer.start_seconds if offer.times.bills_start else 0.0)
    return max(used, offer.times.min_billed)


def run_dollars(core_seconds: float, workers: int, offer: Offer) -> float:
    """Price of a run: all its workers for the time that is billed."""
    return billed_seconds(core_seconds, workers, offer) / 3600 * workers * offer.dollars_per_hour


def last_end(run_core_seconds: Sequence[float], workers: int, concurrency: int, offer: Offer) -> float:
    """Seconds until the last of these runs ends, which start in this order, ``concurrency`` of them side by side."""
    busy_until = [0.0] * max(min(concurrency, len(run_core_seconds)), 1)
    for work in run_core_seconds:
        heapq.heapreplace(busy_until, busy_until[0] + run_seconds(work, workers, offer))
    return max(busy_until)


def night(core_seconds: float, runs: int, workers: int, concurrency: int, offer: Offer) -> Night:
    """``core_seconds`` of work in ``runs`` of the same size."""
    each = core_seconds / max(runs, 1)
    rounds = math.ceil(runs / max(concurrency, 1))
    return Night(
        offer.engine,
        offer.worker_type,
        workers,
        concurrency,
        runs,
        rounds * run_seconds(each, workers, offer),
        runs * run_dollars(each, workers, offer),
    )


def _busy_seconds(core_seconds: float, workers: int, offer: Offer) -> float:
    cores = (workers - DRIVERS) * offer.vcpus
    return offer.times.ramp / 2 + core_seconds / cores + offer.times.tail
