"""Duration and cost of a night, given its work, the number of parallel runs, and what an engine offers.

The cheapest night that ends before the deadline is chosen, otherwise the fastest. Pure, except ``recent_waits``.
"""

import heapq
import math
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from statistics import median
from typing import NamedTuple

from lake.engines import ENGINES, Engine
from lake.engines.description import WORKERS, max_workers
from lake.ledger import CostRow, Ledger
from lake.settings import Settings

WAITS_OF = timedelta(days=7)
"""Executions that were planned earlier do not count, because capacity changes."""


def measured_waits(costs: Iterable[CostRow]) -> dict[str, int]:
    """Median seconds, by engine, between the start of a job run and its first billed second. Pure.

    They include the wait for Flex capacity and the start. A run without billed seconds waited in vain: it is ignored.
    """
    found: defaultdict[str, list[float]] = defaultdict(list)
    for row in costs:
        if row.seconds:
            found[row.engine].append(max(row.end - row.start - row.seconds, 0.0))
    return {engine: round(median(waits)) for engine, waits in found.items()}


def recent_waits(ledger: Ledger, now: datetime) -> dict[str, float]:
    """The ``waits`` for ``offers``: the median wait of job runs in seconds, by engine. ``now`` is aware."""
    today = now.astimezone(UTC).date()
    found: defaultdict[str, list[float]] = defaultdict(list)
    for facts in ledger.executions.settled(today - WAITS_OF, today):
        for engine, seconds in facts.get("waits", {}).items():
            found[engine].append(seconds)
    return {engine: median(waits) for engine, waits in found.items()}


RAMP_SECONDS = 30.0
"""Assumed time until auto scaling has added the last worker; half of it is lost."""
TAIL_SECONDS = 35.0
"""Assumed time from the first idle core until the last manifest is published and the run has ended."""
TAIL_OF_LONGEST = 0.65
"""Tail of a run as a share of its longest task, if this is longer than ``TAIL_SECONDS``: a compressed file is one task,
and the last such task begins at any time. Fitted to five days (tests/unit/sizing/test_batch_lane.py); list scheduling
of single runs gives 0.06 to 0.87."""
MIN_BILLED_SECONDS = 60.0
"""Listed: every engine bills at least one minute (the pricing pages of Glue and EMR Serverless)."""
SHORT_RUN_SECONDS = 600.0
SHORT_POLL_SECONDS = 60.0
LONG_POLL_SECONDS = 300.0
"""Assumed from users' reports: ``.sync`` polls every minute for ten minutes, then every five minutes. So the state
machine notices the end of a run, on average, half an interval late."""


def poll_delay(run_seconds: float) -> float:
    """Average time until the state machine notices that a run of this length has ended."""
    return (SHORT_POLL_SECONDS if run_seconds <= SHORT_RUN_SECONDS else LONG_POLL_SECONDS) / 2


@dataclass(frozen=True, slots=True)
class Offer:
    """Workers of one type on one engine."""

    engine: Engine
    worker_type: str
    vcpus: int
    """vCPUs of a worker; each runs one task at a time."""
    quota_units: float
    """What one worker takes of the engine's quota: DPUs or vCPUs."""
    dollars_per_hour: float
    start_seconds: float
    wait_seconds: float
    """Time that a run waits for capacity before it starts: measured, otherwise assumed."""


def offers(settings: Settings, waits: Mapping[str, float] | None = None) -> Iterator[Offer]:
    """The offer of each engine, allowed by the settings or not, that has workers of the type ``batch.worker_type``.

    ``waits`` has the measured seconds before a run is billed, by engine; they replace the assumed seconds.
    """
    worker = settings.batch.worker_type
    for engine in ENGINES.values():
        if worker in engine.worker_types:
            dollars = engine.worker(worker).at(engine.prices(settings))
            units = engine.quota_units(worker)
            before = (waits or {}).get(engine.name, engine.start_seconds + engine.wait_seconds)
            start = min(engine.start_seconds, before)
            yield Offer(engine.name, worker, WORKERS[worker], units, dollars, start, before - start)


DRIVERS = 1
"""Number of workers of a run that convert nothing."""


class RunWork(NamedTuple):
    core_seconds: float
    """Seconds of one Glue vCPU."""
    longest_seconds: float = 0.0
    """Seconds of its longest file that must be converted by one core; 0 if cores can share all of the work."""


@dataclass(frozen=True, slots=True)
class Night:
    """One way to do a night's work."""

    engine: Engine
    worker_type: str
    workers: int
    """Number of workers of each run, including the driver's."""
    concurrency: int
    runs: int
    seconds: float
    """Seconds from the start to the end of the last run."""
    dollars: float
    """Price of the billed time of the runs only."""


def run_seconds(work: RunWork, workers: int, offer: Offer) -> float:
    """Seconds from the start of a run until Step Functions sees its end."""
    duration = offer.wait_seconds + offer.start_seconds + _busy_seconds(work, workers, offer)
    return duration + poll_delay(duration)


def billed_seconds(work: RunWork, workers: int, offer: Offer) -> float:
    """Seconds for which each worker of a run is billed: from the first task to the end."""
    return max(_busy_seconds(work, workers, offer), MIN_BILLED_SECONDS)


def run_dollars(work: RunWork, workers: int, offer: Offer) -> float:
    """Price of a run in dollars: all its workers for the billed time."""
    return billed_seconds(work, workers, offer) / 3600 * workers * offer.dollars_per_hour


def last_end(runs: Sequence[RunWork], workers: int, concurrency: int, offer: Offer) -> float:
    """Seconds until the last run ends. Runs start in this order, with ``concurrency`` of them in parallel."""
    busy_until = [0.0] * max(min(concurrency, len(runs)), 1)
    for work in runs:
        heapq.heapreplace(busy_until, busy_until[0] + run_seconds(work, workers, offer))
    return max(busy_until)


def _busy_seconds(work: RunWork, workers: int, offer: Offer) -> float:
    cores = (workers - DRIVERS) * offer.vcpus
    tail = max(TAIL_SECONDS, TAIL_OF_LONGEST * work.longest_seconds)
    return RAMP_SECONDS / 2 + max(work.core_seconds / cores + tail, work.longest_seconds + TAIL_SECONDS)


MARGIN = 0.1
"""Share of the time until the deadline that a plan keeps free, because a night is an estimate."""
SAME_PRICE = 0.02
"""Share by which the fastest night may be more expensive than the cheapest one."""
SIZES = (1, 2, 4)
"""Multiples of ``batch.workers``: larger runs have fewer drivers, which convert nothing."""


def choose(
    work: RunWork,
    largest_seconds: float,
    min_runs: int,
    max_runs: int,
    offers: Iterable[Offer],
    rooms: Mapping[Engine, tuple[float, int]],
    allowed: Collection[Engine],
    workers: int,
    seconds: float,
) -> tuple[Night, bool, list[Night]]:
    """Choose how to do ``work`` within ``seconds``, in at least ``min_runs`` runs on an ``allowed`` engine.

    One run has at least ``largest_seconds`` of work, which is the largest manifest's; ``max_runs`` is the number of
    manifests. ``rooms`` has the result of ``EngineDescription.room``. A run has ``workers`` (``batch.workers``), or a
    multiple of it for which the quota has room. Each allowed engine has room for one run (``GlueRoom``, settings). An
    engine on spare capacity must leave time for one vain wait, if the remaining work could then go to another engine.
    Returns the chosen night, whether it ends in time with the margin, and the best night of each engine, allowed or
    not, cheapest first, which includes the chosen one.
    """
    limit = seconds * (1 - MARGIN)
    waits = {engine: ENGINES[engine].max_wait_seconds for engine in Engine}
    others = any(not waits[engine] for engine in allowed)
    limits = {engine: limit - waits[engine] * others for engine in Engine}
    ways = [
        list(_nights(work, largest_seconds, min_runs, max_runs, offer, rooms[offer.engine], workers))
        for offer in offers
    ]
    options = [_best(nights, limits) for nights in ways if nights]
    chosen = _best([option for option in options if option.engine in allowed], limits)
    return chosen, chosen.seconds <= limit, sorted(options, key=lambda item: (item.dollars, item.seconds))


def _best(nights: list[Night], limits: Mapping[Engine, float]) -> Night:
    fitting = [item for item in nights if item.seconds <= limits[item.engine]]
    if not fitting:
        return min(nights, key=lambda item: (item.seconds, item.dollars))
    limit = min(item.dollars for item in fitting) * (1 + SAME_PRICE)
    return min((item for item in fitting if item.dollars <= limit), key=lambda item: (item.seconds, item.dollars))


def _nights(
    work: RunWork,
    largest_seconds: float,
    min_runs: int,
    max_runs: int,
    offer: Offer,
    room: tuple[float, int],
    workers: int,
) -> Iterator[Night]:
    """Nights with this offer, from one run at a time up to the quota; runs fill whole rounds."""
    units, room_runs = room
    largest = min(units / offer.quota_units, max_workers(offer.worker_type))
    for size in (factor * workers for factor in SIZES if factor * workers <= largest):
        most = min(int(units // (size * offer.quota_units)), room_runs, max_runs)
        # 1, 2, 4, ... and the maximum.
        for concurrency in sorted({*(1 << power for power in range(most.bit_length())), most}) if most > 0 else ():
            rounds = math.ceil(min(min_runs, max_runs) / concurrency)
            runs = min(concurrency * rounds, max_runs)
            each = RunWork(work.core_seconds / runs, work.longest_seconds)
            first = RunWork(max(each.core_seconds, largest_seconds), work.longest_seconds)
            seconds = max(rounds * run_seconds(each, size, offer), run_seconds(first, size, offer))
            dollars = runs * run_dollars(each, size, offer)
            yield Night(offer.engine, offer.worker_type, size, concurrency, runs, seconds, dollars)
