"""The way to do a night's work: the cheapest that ends before the deadline, else the fastest. Pure."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass

from lake.engines import ENGINES, Engine
from lake.engines.workers import max_workers
from router.estimate.night import Night, Offer, RunWork, night

MARGIN = 0.1
"""Share of the time until the deadline that a plan leaves unused: a night is an estimate."""
SAME_PRICE = 0.02
"""Share by which prices may differ for the fastest way to be taken."""
SIZES = (1, 2, 4)
"""Multiples of ``batch.workers``: a larger run has fewer drivers, which convert nothing."""


@dataclass(frozen=True, slots=True)
class Work:
    """What a night has to convert."""

    core_seconds: float
    """Time on one vCPU of Glue."""
    min_runs: int
    """Number of runs that the limits of a run demand (``batch.run_bytes``, ``RUN_MANIFESTS``, ``RUN_FILES``)."""
    max_runs: int
    """Number of manifests: none is divided among runs."""
    longest_seconds: float = 0.0
    """The longest compressed file."""


@dataclass(frozen=True, slots=True)
class Room:
    """What an engine's quota leaves for a night, the streaming job's reserve taken off."""

    units: float
    """DPUs or vCPUs."""
    runs: int
    """Runs side by side."""


@dataclass(frozen=True, slots=True)
class Choice:
    """The chosen way, and whether it ends in time."""

    night: Night
    fits: bool
    """Whether it ends before the deadline, with the margin."""
    options: tuple[Night, ...]
    """The best way of each engine, allowed or not, cheapest first; the chosen one is among them."""


def choose(
    work: Work,
    offers: Iterable[Offer],
    rooms: Mapping[Engine, Room],
    allowed: Collection[Engine],
    workers: int,
    seconds: float,
) -> Choice:
    """The way to do ``work`` within ``seconds`` from its start, on an ``allowed`` engine.

    An engine on spare capacity has to leave time for one wait in vain where what is left could then go to another one.

    Parameters
    ----------
    workers
        Workers of a run (``batch.workers``); multiples of it are considered too, where the quota has room.

    Raises
    ------
    ValueError
        No allowed engine has room for a single run.
    """
    limit = seconds * (1 - MARGIN)
    waits = {engine: ENGINES[engine].max_wait_seconds for engine in Engine}
    others = any(not waits[engine] for engine in allowed)
    limits = {engine: limit - waits[engine] * others for engine in Engine}
    ways = [list(_nights(work, offer, rooms[offer.engine], workers)) for offer in offers]
    options = [_best(nights, limits) for nights in ways if nights]
    candidates = [option for option in options if option.engine in allowed]
    if not candidates:
        raise ValueError(f"no engine of {', '.join(allowed)} has room for one run of {workers} workers")
    chosen = _best(candidates, limits)
    return Choice(
        chosen,
        chosen.seconds <= limit,
        tuple(sorted(options, key=lambda item: (item.dollars, item.seconds))),
    )


def _best(nights: list[Night], limits: Mapping[Engine, float]) -> Night:
    fitting = [item for item in nights if item.seconds <= limits[item.engine]]
    if not fitting:
        return min(nights, key=lambda item: (item.seconds, item.dollars))
    limit = min(item.dollars for item in fitting) * (1 + SAME_PRICE)
    return min((item for item in fitting if item.dollars <= limit), key=lambda item: (item.seconds, item.dollars))


def _nights(work: Work, offer: Offer, room: Room, workers: int) -> Iterator[Night]:
    """Ways with this offer, from one run after the other up to all that the quota allows; runs fill whole rounds."""
    for size in run_sizes(offer, workers, room.units):
        most = min(int(room.units // (size * offer.quota_units)), room.runs, work.max_runs)
        for concurrency in _steps_up_to(most):
            runs = concurrency * math.ceil(work.min_runs / concurrency)
            yield night(RunWork(work.core_seconds, work.longest_seconds), runs, size, concurrency, offer)


def run_sizes(offer: Offer, workers: int, units: float) -> Iterator[int]:
    """Numbers of workers that a run may have within ``units`` of the engine's quota."""
    most = min(units / offer.quota_units, max_workers(offer.worker_type))
    return (size for factor in SIZES if (size := factor * workers) <= most)


def _steps_up_to(most: int) -> Iterator[int]:
    """1, 2, 4, ... and ``most``."""
    number = 1
    while number < most:
        yield number
        number *= 2
    if most >= 1:
        yield most
