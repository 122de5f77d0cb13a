"""A backlog becomes a night: the engine, the workers of a run, the runs side by side, what is in each of them. Pure."""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from lake.engines import ENGINES, Engine
from lake.engines.description import WORKERS
from lake.errors import InvalidInputError
from lake.ledger import ManifestRow
from lake.settings import BatchSettings, Settings
from lake.settings.lanes import RUN_FILES, RUN_MANIFESTS
from lake.speed import FAST, SLOW, Speeds
from router.estimate.night import DRIVERS, MARGIN, Choice, Night, Room, RunWork, Work, choose, offers, run_seconds
from router.estimate.other_costs import estimate_shares, expected_share
from router.plan.forecast import Forecast, SpeedRange, forecast
from router.plan.glue_room import GlueRoom

MAX_TRIES = 8
"""Runs that are tried for a manifest before it gets a new one; with all of them, packing would take quadratic time."""


@dataclass(frozen=True, slots=True)
class PlannedRun:
    """The manifests that one job run converts."""

    manifests: tuple[ManifestRow, ...]

    @property
    def bytes(self) -> int:
        return sum(row.bytes for row in self.manifests)

    @property
    def files(self) -> int:
        return sum(row.files for row in self.manifests)


class _OpenRun:
    """A run that is being filled."""

    def __init__(self) -> None:
        self.manifests: list[ManifestRow] = []
        self.seconds = 0.0
        self._bytes = 0
        self._files = 0

    def add(self, row: ManifestRow, seconds: float) -> None:
        self.manifests.append(row)
        self.seconds += seconds
        self._bytes += row.bytes
        self._files += row.files

    def has_room(self, row: ManifestRow, limits: BatchSettings) -> bool:
        """An empty run takes any manifest."""
        return not self.manifests or (
            len(self.manifests) < RUN_MANIFESTS
            and self._bytes + row.bytes <= limits.run_bytes
            and self._files + row.files <= RUN_FILES
        )


def pack_evenly(
    rows: Iterable[ManifestRow], limits: BatchSettings, count: int, seconds: Callable[[ManifestRow], float]
) -> list[PlannedRun]:
    """About ``count`` runs that take about the same time; more where the limits of a run demand it.

    Runs have at most ``run_bytes``, ``RUN_MANIFESTS`` and ``RUN_FILES``; a larger manifest has a run of its own. Every
    manifest is in exactly one run. The longest manifest first, each to the run with the least work.
    """
    runs = [_OpenRun() for _ in range(max(count, 1))]
    least = [(0.0, number) for number in range(len(runs))]
    for row in sorted(rows, key=lambda row: (-seconds(row), row.id)):
        tried: list[tuple[float, int]] = []
        while least and len(tried) < MAX_TRIES:
            tried.append(heapq.heappop(least))
            if runs[tried[-1][1]].has_room(row, limits):
                number = tried.pop()[1]
                break
        else:
            number = len(runs)
            runs.append(_OpenRun())
        runs[number].add(row, seconds(row))
        if len(runs[number].manifests) < RUN_MANIFESTS:
            tried.append((runs[number].seconds, number))
        for entry in tried:
            heapq.heappush(least, entry)
    return [PlannedRun(tuple(run.manifests)) for run in runs if run.manifests]


def pack_oldest_first(
    rows: Iterable[ManifestRow], limits: BatchSettings, count: int, seconds: Callable[[ManifestRow], float]
) -> list[PlannedRun]:
    """Like ``pack_evenly``, but each run has older hours than the next: for a night that will not end in time."""
    ordered = sorted(rows, key=lambda row: (row.partition.date, row.partition.hour, row.partition.dataset, row.id))
    share = sum(map(seconds, ordered)) / max(count, 1)
    runs = [_OpenRun()]
    for row in ordered:
        if runs[-1].seconds >= share or not runs[-1].has_room(row, limits):
            runs.append(_OpenRun())
        runs[-1].add(row, seconds(row))
    return [PlannedRun(tuple(run.manifests)) for run in runs if run.manifests]


def allowed_engines(given: Mapping[str, Any], batch: BatchSettings) -> tuple[str, ...]:
    """The engine that the input field ``engine`` names; without one, all of ``batch.engines``.

    Raises ``InvalidInputError``: the settings do not allow the engine, so it may not be deployed.
    """
    asked = given.get("engine")
    if asked is None:
        return batch.engines
    if asked not in batch.engines:
        raise InvalidInputError(
            f"engine = {asked!r} is not allowed: pass one of {', '.join(batch.engines)}, "
            "or add it to batch.engines and deploy the stack again"
        )
    return (asked,)


MAX_RUN_SECONDS = 3600
"""Longest work of a run of ``batch.workers``, also of input whose stored bytes take long, such as compressed files."""


@dataclass(frozen=True, slots=True)
class PlannedNight:
    """The runs of a night, all on one engine and of the same workers."""

    runs: tuple[PlannedRun, ...]
    core_seconds: tuple[float, ...]
    """Expected work of each run, in seconds of one vCPU of Glue."""
    night: Night
    forecast: Forecast
    begin_by: tuple[datetime, ...]
    """When each run has to begin in order to end before the deadline, aware."""
    fallback: Engine | None
    """The engine on which a run goes on that begins later or finds no capacity; None: the settings allow no other."""


def plan_night(
    rows: Sequence[ManifestRow],
    settings: Settings,
    speeds: Speeds,
    glue: GlueRoom,
    start: datetime,
    deadline: datetime,
    waits: Mapping[str, float] | None = None,
) -> PlannedNight:
    """The cheapest night that ends before ``deadline``; if none does, the fastest, with the oldest hours first.

    ``start`` and ``deadline`` are aware. ``waits``: what ``offers`` takes.
    """
    batch, core_seconds = settings.batch, speeds.core_seconds
    total = sum(map(core_seconds, rows))
    longest = max(map(speeds.longest_seconds, rows), default=0.0)
    work = Work(total, _min_runs(rows, total, settings), max(len(rows), 1), longest)
    rooms = {engine.name: Room(*engine.room(settings, glue.dpus, glue.runs)) for engine in ENGINES.values()}
    offered = tuple(offers(settings, waits))
    allowed = [Engine(name) for name in batch.engines]
    choice = choose(work, offered, rooms, allowed, batch.workers, (deadline - start).total_seconds())
    pack = pack_evenly if choice.fits else pack_oldest_first
    runs = pack(rows, batch, choice.night.runs, core_seconds)
    (offer,) = (offer for offer in offered if offer.engine == choice.night.engine)
    works = SpeedRange(
        *(_run_works(runs, of) for of in (speeds.at(FAST, settings.price), speeds, speeds.at(SLOW, settings.price)))
    )
    begin_by = tuple(
        deadline - timedelta(seconds=run_seconds(work, choice.night.workers, offer)) for work in works.expected
    )
    other = estimate_shares([expected_share(rows, settings.convert.target_file_bytes)])
    expected = forecast(works, other, choice, offer, start, deadline, MARGIN)
    each = tuple(work.core_seconds for work in works.expected)
    return PlannedNight(tuple(runs), each, choice.night, expected, begin_by, _fallback(choice, allowed))


def _run_works(runs: Sequence[PlannedRun], speeds: Speeds) -> list[RunWork]:
    return [
        RunWork(sum(map(speeds.core_seconds, run.manifests)), max(map(speeds.longest_seconds, run.manifests)))
        for run in runs
    ]


def _fallback(choice: Choice, allowed: Collection[Engine]) -> Engine | None:
    """The cheapest other engine that needs no spare capacity."""
    others = (option.engine for option in choice.options if option.engine in allowed)
    return next((it for it in others if it != choice.night.engine and not ENGINES[it].max_wait_seconds), None)


def _min_runs(rows: Sequence[ManifestRow], core_seconds: float, settings: Settings) -> int:
    batch = settings.batch
    run_cores = (batch.workers - DRIVERS) * WORKERS[batch.worker_type]
    return max(
        math.ceil(core_seconds / run_cores / MAX_RUN_SECONDS),
        math.ceil(sum(row.bytes for row in rows) / batch.run_bytes),
        math.ceil(sum(row.files for row in rows) / RUN_FILES),
        math.ceil(len(rows) / RUN_MANIFESTS),
        1,
    )
