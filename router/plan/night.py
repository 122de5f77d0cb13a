"""A backlog becomes a night: the engine, the workers of a run, the runs side by side, what is in each of them. Pure."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from lake.engines import Engine
from lake.engines.workers import WORKERS
from lake.errors import InvalidInputError
from lake.settings.lanes import RUN_FILES, RUN_MANIFESTS
from router.estimate.choose import MARGIN, Choice, Room, Work, choose
from router.estimate.night import DRIVERS, Night, RunWork, run_seconds
from router.estimate.offer import offers
from router.estimate.other_costs import estimate_shares, expected_share
from router.estimate.speed import FAST, SLOW, Speeds
from router.plan.forecast import Forecast, SpeedRange, forecast
from router.plan.pack import PlannedRun, pack_evenly, pack_oldest_first

if TYPE_CHECKING:
    from lake.ledger import ManifestRow
    from lake.settings import BatchSettings, Settings
    from router.plan.glue_room import GlueRoom


def allowed_engines(given: Mapping[str, Any], batch: BatchSettings) -> tuple[str, ...]:
    """The engine that the input field ``engine`` names; without one, all of ``batch.engines``.

    Raises
    ------
    InvalidInputError
        The settings do not allow the engine, so it may not be deployed.
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
) -> PlannedNight:
    """The cheapest night that ends before ``deadline``; if none does, the fastest, with the oldest hours first.

    ``start`` and ``deadline`` are aware.
    """
    batch, core_seconds = settings.batch, speeds.core_seconds
    total = sum(map(core_seconds, rows))
    longest = max(map(speeds.longest_seconds, rows), default=0.0)
    work = Work(total, _min_runs(rows, total, settings), max(len(rows), 1), longest)
    rooms = {
        Engine.GLUE: Room(glue.dpus, min(batch.max_runs, glue.runs)),
        Engine.GLUE_FLEX: Room(glue.dpus, min(batch.max_runs, glue.runs)),
        Engine.EMR_SERVERLESS: Room(settings.emr.max_vcpus, batch.max_runs),
    }
    offered = tuple(offers(settings))
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
    return next((engine for engine in others if engine not in (choice.night.engine, Engine.GLUE_FLEX)), None)


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
