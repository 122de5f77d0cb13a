"""The duration and cost of a night: so much work, on so many runs side by side, of so many workers each. Pure."""

from __future__ import annotations

import heapq
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from router.estimate.offer import TAIL_OF_LONGEST, Offer

if TYPE_CHECKING:
    from lake.engines import Engine

DRIVERS = 1
"""Workers of a run that convert nothing."""


class RunWork(NamedTuple):
    """What one run has to convert."""

    core_seconds: float
    """Time on one vCPU of Glue."""
    longest_seconds: float = 0.0
    """The part of it that one compressed file takes, which no two cores can share."""


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


def run_seconds(work: RunWork, workers: int, offer: Offer) -> float:
    """From the start of a run to the end that Step Functions sees."""
    lived = offer.wait_seconds + offer.start_seconds + _busy_seconds(work, workers, offer)
    return lived + offer.times.poll_delay(lived)


def billed_seconds(work: RunWork, workers: int, offer: Offer) -> float:
    """For which each worker of a run is billed: from the first task to the end, or from its start if that is billed."""
    used = _busy_seconds(work, workers, offer) + (offer.start_seconds if offer.times.bills_start else 0.0)
    return max(used, offer.times.min_billed)


def run_dollars(work: RunWork, workers: int, offer: Offer) -> float:
    """Price of a run: all its workers for the time that is billed."""
    return billed_seconds(work, workers, offer) / 3600 * workers * offer.dollars_per_hour


def last_end(runs: Sequence[RunWork], workers: int, concurrency: int, offer: Offer) -> float:
    """Seconds until the last of these runs ends, which start in this order, ``concurrency`` of them side by side."""
    busy_until = [0.0] * max(min(concurrency, len(runs)), 1)
    for work in runs:
        heapq.heapreplace(busy_until, busy_until[0] + run_seconds(work, workers, offer))
    return max(busy_until)


def night(work: RunWork, runs: int, workers: int, concurrency: int, offer: Offer) -> Night:
    """The work of all ``runs``, which are of the same size; each has a file that takes ``longest_seconds``."""
    each = work._replace(core_seconds=work.core_seconds / max(runs, 1))
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


def _busy_seconds(work: RunWork, workers: int, offer: Offer) -> float:
    cores = (workers - DRIVERS) * offer.vcpus
    tail = max(offer.times.tail, TAIL_OF_LONGEST * work.longest_seconds)
    return offer.times.ramp / 2 + max(work.core_seconds / cores + tail, work.longest_seconds + offer.times.tail)
