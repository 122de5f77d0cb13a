"""Plans a night for a backlog: engine, workers of a run, parallel runs, their manifests, and the forecast. Pure."""

import heapq
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Annotated

from lake.engines import ENGINES, Engine
from lake.engines.description import WORKERS, divide_by_weight
from lake.ledger import ManifestRow, State
from lake.manifest import Lane, Partition
from lake.settings import BatchSettings, Settings
from lake.settings.lanes import RUN_FILES, RUN_MANIFESTS
from lake.speed import FAST, SLOW, Speeds
from lake.time import iso_utc
from router.estimate.night import (
    DRIVERS,
    MARGIN,
    Night,
    RunWork,
    choose,
    last_end,
    offers,
    run_dollars,
    run_seconds,
)
from router.estimate.other_costs import estimate_shares, expected_share
from router.plan.glue_room import GlueRoom

DIGITS = 6
"""Decimals of dollars in a forecast: millionths, as in the ledger's costs."""


@dataclass(frozen=True, slots=True)
class Forecast:
    """Expected duration and cost of a plan."""

    minutes: Annotated[float, "from its start to the end of the last run"]
    dollars: Annotated[float, "price of the billed time of the runs only"]
    dollars_low: Annotated[float, "if S3 is read faster than assumed"]
    dollars_high: Annotated[float, "if S3 is read slower; equals dollars if every dataset was measured"]
    minutes_low: Annotated[float, "if S3 is read faster than assumed"]
    minutes_high: Annotated[float, "if S3 is read slower"]
    other_dollars: Annotated[float, "requests, ledger and functions of the planned manifests"]
    storage_dollars_per_month: Annotated[float, "price of storing what the runs will write, per month"]
    start: Annotated[str, "ISO 8601, UTC"]
    end: Annotated[str, "ISO 8601, UTC"]
    deadline: Annotated[str, "ISO 8601, UTC"]
    fits: Annotated[bool, "the last run ends before the deadline, with the margin"]
    late_minutes: Annotated[float, "from the deadline to its end; 0 if it ends in time"]
    options: Annotated[tuple[Night, ...], "the best night on each engine, allowed or not, cheapest first"]


MAX_TRIES = 8
"""Number of runs that are tried for a manifest before it gets a new run; trying all would take quadratic time."""


@dataclass(slots=True)
class PlannedRun:
    """The manifests that one job run converts."""

    manifests: list[ManifestRow] = field(default_factory=list)
    bytes: int = 0
    files: int = 0
    seconds: float = 0.0
    """Expected work in seconds of one Glue vCPU."""

    def add(self, row: ManifestRow, seconds: float) -> None:
        self.manifests.append(row)
        self.bytes += row.bytes
        self.files += row.files
        self.seconds += seconds

    def has_room(self, row: ManifestRow, limits: BatchSettings) -> bool:
        """Whether the manifest fits; an empty run takes any manifest."""
        return not self.manifests or (
            len(self.manifests) < RUN_MANIFESTS
            and self.bytes + row.bytes <= limits.run_bytes
            and self.files + row.files <= RUN_FILES
        )


def pack_evenly(
    rows: Iterable[ManifestRow], limits: BatchSettings, count: int, seconds: Callable[[ManifestRow], float]
) -> list[PlannedRun]:
    """Pack manifests into about ``count`` runs of about the same duration; more if the limits of a run require it.

    Runs have at most ``run_bytes``, ``RUN_MANIFESTS`` and ``RUN_FILES``; a larger manifest gets a run of its own. Every
    manifest is in exactly one run. The longest manifests come first, and each goes to the run with the least work.
    """
    runs = [PlannedRun() for _ in range(max(count, 1))]
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
            runs.append(PlannedRun())
        runs[number].add(row, seconds(row))
        if len(runs[number].manifests) < RUN_MANIFESTS:
            tried.append((runs[number].seconds, number))
        for entry in tried:
            heapq.heappush(least, entry)
    return [run for run in runs if run.manifests]


def pack_oldest_first(
    rows: Iterable[ManifestRow], limits: BatchSettings, count: int, seconds: Callable[[ManifestRow], float]
) -> list[PlannedRun]:
    """Like ``pack_evenly``, but in order of hours: a night that will be late converts the oldest hours first."""
    ordered = sorted(rows, key=lambda row: (row.partition.date, row.partition.hour, row.partition.dataset, row.id))
    share = sum(map(seconds, ordered)) / max(count, 1)
    runs = [PlannedRun()]
    for row in ordered:
        if runs[-1].seconds >= share or not runs[-1].has_room(row, limits):
            runs.append(PlannedRun())
        runs[-1].add(row, seconds(row))
    return [run for run in runs if run.manifests]


MAX_RUN_SECONDS = 3600
"""Maximum work of a run with ``batch.workers``, which also limits inputs with slow bytes, such as compressed files."""


NEVER = datetime.max.replace(tzinfo=UTC)


def equal_rows(name: str, partition: Partition, number: int, *totals: int) -> list[ManifestRow]:
    """QUEUED manifests of the batch lane with equal shares of ``totals``: bytes, files and compressed bytes."""
    shares = zip(*(divide_by_weight(total, [1] * number) for total in totals), strict=True)
    queued = State.QUEUED, Lane.BATCH, partition, ""
    return [ManifestRow(f"{name}-{count}", *queued, *share) for count, share in enumerate(shares)]


@dataclass(frozen=True, slots=True)
class PlannedNight:
    """The runs of a night, all on one engine and with the same workers."""

    runs: tuple[PlannedRun, ...]
    night: Night
    forecast: Forecast
    begin_by: tuple[datetime, ...]
    """Latest start of each run at which it ends before the deadline; aware. ``NEVER`` if the runs would wait in the
    fallback's queue, where a late run would end even later."""
    fallback: Engine | None
    """The engine for runs that begin later or find no capacity: the cheapest other allowed engine that needs no spare
    capacity and has room for the same runs, else one that queues them. None if there is no such engine."""


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

    ``start`` and ``deadline`` are aware. ``waits`` is passed to ``offers``.
    """
    batch, core_seconds, time = settings.batch, speeds.core_seconds, (deadline - start).total_seconds()
    total = sum(map(core_seconds, rows))
    longest = max(map(speeds.longest_seconds, rows), default=0.0)
    rooms = {engine.name: engine.room(settings, glue.dpus, glue.runs) for engine in ENGINES.values()}
    offered = tuple(offers(settings, waits))
    allowed = [Engine(name) for name in batch.engines]
    runs_needed, most = _min_runs(rows, total, settings), max(len(rows), 1)
    largest = max(map(core_seconds, rows), default=0.0)
    work = RunWork(total, longest)
    night, fits, options = choose(work, largest, runs_needed, most, offered, rooms, allowed, batch.workers, time)
    (offer,) = (offer for offer in offered if offer.engine == night.engine)

    def works_of(runs: Iterable[PlannedRun], speeds: Speeds) -> list[RunWork]:
        work, longest = speeds.core_seconds, speeds.longest_seconds
        return [RunWork(sum(map(work, run.manifests)), max(map(longest, run.manifests))) for run in runs]

    runs = pack_evenly(rows, batch, night.runs, core_seconds)
    if not fits or last_end(works_of(runs, speeds), night.workers, night.concurrency, offer) > time:
        runs = pack_oldest_first(rows, batch, night.runs, core_seconds)
    # For S3 as fast as ``FAST``, as expected, and as slow as ``SLOW``.
    works = [works_of(runs, each) for each in (speeds.at(FAST), speeds, speeds.at(SLOW))]
    low, seconds, high = (last_end(each, night.workers, night.concurrency, offer) for each in works)
    dollars_low, dollars, dollars_high = (
        round(sum(run_dollars(work, night.workers, offer) for work in each), DIGITS) for each in works
    )
    other = estimate_shares([expected_share(rows, settings.convert.target_file_bytes)])
    forecast = Forecast(
        minutes=round(seconds / 60, 1),
        dollars=dollars,
        dollars_low=dollars_low,
        dollars_high=dollars_high,
        minutes_low=round(low / 60, 1),
        minutes_high=round(high / 60, 1),
        other_dollars=round(other.total, DIGITS),
        storage_dollars_per_month=round(other.storage_per_month, DIGITS),
        start=iso_utc(start),
        end=iso_utc(start + timedelta(seconds=seconds)),
        deadline=iso_utc(deadline),
        fits=seconds <= time * (1 - MARGIN),
        late_minutes=round(max(0.0, seconds - time) / 60, 1),
        options=tuple(replace(item, dollars=round(item.dollars, DIGITS)) for item in options),
    )

    def has_room(engine: Engine) -> bool:
        (units, most), each = rooms[engine], night.workers * ENGINES[engine].quota_units(night.worker_type)
        return night.concurrency * each <= units and night.concurrency <= most

    def takes_runs(engine: Engine) -> bool:
        return not ENGINES[engine].max_wait_seconds and (has_room(engine) or ENGINES[engine].queues_runs)

    others = (option.engine for option in options if option.engine in allowed and option.engine != night.engine)
    fallback = max(filter(takes_runs, others), key=has_room, default=None)
    begin_by = tuple(deadline - timedelta(seconds=run_seconds(work, night.workers, offer)) for work in works[1])
    if fallback is not None and not has_room(fallback):
        begin_by = (NEVER,) * len(runs)
    night = replace(night, runs=len(runs), seconds=seconds, dollars=dollars)
    return PlannedNight(tuple(runs), night, forecast, begin_by, fallback)


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
