"""One day and its night, in virtual time, for each way to route its files and each engine."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import date, timedelta
from itertools import zip_longest
from typing import TYPE_CHECKING

from lake.compression import has_compressed_name
from lake.counted import format_count
from lake.dataset_rules import matching_rule
from lake.ledger import CostShare
from lake.manifest import Lane
from lake.time import iso_utc
from router.estimate.other_costs import OUTPUT_RATIO, estimate_shares
from router.estimate.speed import FAST, SLOW
from router.stream.spill import is_spilling
from sizing.arrivals import DAY_SECONDS, ProfileArrivals
from sizing.assumptions import assumptions, dataset_speeds
from sizing.batch_lane import collect_backlog, simulate_night
from sizing.histogram import Latencies, Timeline
from sizing.options import ALL_BATCH, as_one_stream_job, routing_options, simulated_engines, with_engine
from sizing.result import Dollars, LaneResult, LatencySeconds, NightResult, OptionResult, Series, Simulation
from sizing.routing import Router
from sizing.schedule import night_start, stream_window
from sizing.speed import Speed
from sizing.stream_lane import StreamLane

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from datetime import datetime

    from lake.ledger import DatasetSpeed
    from lake.settings import Settings
    from sizing.arrivals import Arrivals
    from sizing.batch_lane import SimulatedNight
    from sizing.options import RoutingOption
    from sizing.profile import Profile
    from sizing.routing import SimulatedManifest

TERABYTE = 10**12
DAYS_OF_A_MONTH = 30


@dataclass(frozen=True, slots=True)
class Load:
    """What arrives in a day."""

    files: int
    bytes: int
    peak_core_seconds: float
    """Work on one core that arrives per second in the busiest hour."""
    kinds: tuple[tuple[str, bool], ...]
    """Each dataset, and whether its compressed files are meant; an empty name: no rule takes them."""


@dataclass(slots=True)
class RoutedDay:
    """The day until its night: what the stream lane did, and what is left for the night."""

    stream: StreamLane
    router: Router
    stream_manifests: int
    waiting: list[SimulatedManifest]
    peak: tuple[int, float]
    """Largest backlog of the stream lane in bytes, and when, in seconds from the start of the day."""
    stream_backlog: Timeline


def simulate_profile(profile: Profile, settings: Settings, log: Callable[[str], object]) -> Simulation:
    """All options of a profile's day, and the cheapest night of the same rows as gzip files."""
    night = night_start(settings, date.fromisoformat(profile.date))
    ratio, failing = profile.gzip.ratio, profile.failures.share
    found = simulate(ProfileArrivals(profile, settings, night), settings, ratio, failing, log)
    if profile.gzip.share:
        return found
    log("the same rows as gzip files")
    sizes = tuple(replace(size, bytes=max(round(size.bytes / ratio), 1)) for size in profile.sizes)
    arrivals = ProfileArrivals(replace(profile, sizes=sizes, gzip=replace(profile.gzip, share=1.0)), settings, night)
    options = [*simulate_at(arrivals, settings, Speed.of(settings, ratio), failing, lambda _: None, ALL_BATCH)]
    in_time = [item.result for item in options if item.result.night and item.result.night.fits]
    return replace(found, as_gzip=min(in_time, key=lambda item: item.dollars.total, default=None))


def simulate(
    arrivals: Arrivals,
    settings: Settings,
    ratio: float,
    failing_share: float,
    log: Callable[[str], object],
    measured: Mapping[str, DatasetSpeed] | None = None,
) -> Simulation:
    """All options of a day, at the assumed speed, and their dollars and ends at a lower and at a higher one.

    Parameters
    ----------
    ratio
        Bytes of NDJSON for each byte of a compressed file.
    failing_share
        Share of runs, and of manifests of the stream lane, that fail once.
    log
        Gets a sentence of progress for each option.
    measured
        Speeds of datasets by the ledger; None: there is no ledger, and speeds are those of the settings.
    """
    stream_jobs, settings = settings.stream_runs, as_one_stream_job(settings)
    speed = Speed.of(settings, ratio, measured)
    load = measure_load(arrivals, settings, speed)
    expected = list(simulate_at(arrivals, settings, speed, failing_share, log))
    ends = []
    if not all(speed.is_measured(*kind) for kind in load.kinds):
        for share in (FAST, SLOW):
            log(f"the same with S3 read {share:g} times as fast")
            price = settings.price
            price = replace(price, mb_per_second_per_core=share * price.mb_per_second_per_core)
            changed = replace(settings, price=price)
            other = Speed.of(changed, ratio, measured)
            found = simulate_at(arrivals, changed, other, failing_share, lambda _: None)
            ends.append({item.name: item.result for item in found})
    rests_on = list(assumptions(settings, ratio, stream_jobs))
    if measured is not None:
        rests_on += dataset_speeds(speed, load.kinds)
    return Simulation(
        load.files,
        load.bytes,
        tuple(_with_range(item, *(found.get(item.name) for found in ends)) for item in expected),
        {item.name: item.series for item in expected},
        tuple(rests_on),
    )


def _with_range(
    item: SimulatedOption, fast: OptionResult | None = None, slow: OptionResult | None = None
) -> OptionResult:
    """The option with the dollars and the end that it has when S3 is read faster and slower than assumed."""
    found = item.result
    all_three = [option.dollars for option in (fast, found, slow) if option]
    days, months = ([getattr(dollars, name) for dollars in all_three] for name in ("total", "month"))
    dollars = replace(found.dollars, low=min(days), high=max(days), month_low=min(months), month_high=max(months))
    night = found.night
    if night and fast and fast.night and slow and slow.night:
        night = replace(night, end_low=fast.night.end, end_high=slow.night.end)
    return replace(found, night=night, dollars=dollars)


@dataclass(frozen=True, slots=True)
class SimulatedOption:
    """A way to route the day, with an engine of its night."""

    name: str
    """Of its series: ``hybrid/glue-flex``."""
    result: OptionResult
    series: Series


def simulate_at(
    arrivals: Arrivals,
    settings: Settings,
    speed: Speed,
    failing_share: float,
    log: Callable[[str], object],
    only: str | None = None,
) -> Iterator[SimulatedOption]:
    """The options at one speed; ``only`` one way to route, by its name."""
    load = measure_load(arrivals, settings, speed)
    for option in routing_options(settings, load.peak_core_seconds, speed.task_bytes):
        if only not in (None, option.name):
            continue
        log(f"{option.name}: {format_count(load.files, 'file')}")
        day = route_day(arrivals, option.settings, speed, failing_share)
        backlog = collect_backlog(day.waiting, option.settings)
        if not backlog.items:
            result = _result(option, "", arrivals.night, day, None)
            yield SimulatedOption(option.name, result, _series(arrivals.night, day, None))
            continue
        for engine in simulated_engines(settings):
            night = simulate_night(backlog, with_engine(option.settings, engine), arrivals.night, failing_share)
            result = _result(option, engine.name, arrivals.night, day, night)
            yield SimulatedOption(f"{option.name}/{engine.name}", result, _series(arrivals.night, day, night))


def measure_load(arrivals: Arrivals, settings: Settings, speed: Speed) -> Load:
    """What arrives, before anything is decided."""
    files = size = 0
    hours = [0.0] * (DAY_SECONDS // 3600)
    kinds: set[tuple[str, bool]] = set()
    for number, groups in enumerate(arrivals.windows()):
        for group in groups:
            files += group.count
            size += group.count * group.bytes
            kind = matching_rule(group.key, settings.datasets)[1], has_compressed_name(group.key)
            kinds.add(kind)
            work = group.count * speed.file_seconds(*kind, group.bytes)
            hours[number * settings.input.event_window_seconds // 3600] += work
    return Load(files, size, max(hours) / 3600, tuple(sorted(kinds)))


def route_day(arrivals: Arrivals, settings: Settings, speed: Speed, failing_share: float) -> RoutedDay:
    """Window after window: route decides, the stream lane works, its watch measures the backlog."""
    router = Router(settings, speed, arrivals.night)
    window, length = _window_seconds(settings, arrivals.night), settings.input.event_window_seconds
    stream = StreamLane(settings, window, failing_share)
    waiting: list[SimulatedManifest] = []
    backlog, peak, spilling, manifests, watched = Timeline(), (0, 0.0), False, 0, 0.0
    for number, groups in enumerate(arrivals.windows()):
        now = (number + 1.0) * length
        stream.advance(now)
        if window and window[0] <= now <= window[1] and now - watched >= settings.schedule.watch_seconds:
            spilling, watched = is_spilling(settings.stream, stream.backlog_core_seconds, spilling), now
        for manifest in router.route(number, groups, spilling=spilling):
            if manifest.row.lane == Lane.STREAM:
                stream.add(manifest)
                manifests += 1
            else:
                waiting.append(manifest)
        backlog.add(now - length, now, stream.backlog_bytes)
        if stream.backlog_bytes > peak[0]:
            peak = (stream.backlog_bytes, now)
    stream.finish()
    return RoutedDay(stream, router, manifests, waiting, peak, backlog)


def _converted(day: RoutedDay, night: SimulatedNight | None, target_file_bytes: int) -> CostShare:
    """What both lanes have converted, as the ledger of costs counts it."""
    stream, waiting = day.stream, [found.row for found in day.waiting]
    inflated = sum(found.work.inflated_bytes for found in day.waiting)
    planned = sum(len(run.manifests) for run in night.planned.runs) if night else 0
    objects = max(planned, round(inflated * OUTPUT_RATIO / target_file_bytes))
    return CostShare(
        "",
        0,
        bytes=stream.bytes + sum(row.bytes for row in waiting),
        files=stream.latencies.files + sum(row.files for row in waiting),
        manifests=day.stream_manifests + len(waiting),
        objects=stream.objects + objects,
        written_bytes=round((stream.inflated_bytes + inflated) * OUTPUT_RATIO),
    )


def _window_seconds(settings: Settings, night: datetime) -> tuple[float, float] | None:
    found = stream_window(settings, night)
    if found is None:
        return None
    first = night - timedelta(seconds=DAY_SECONDS)
    start, end = ((instant - first).total_seconds() for instant in found)
    return max(start, 0.0), min(end, float(DAY_SECONDS))


def _result(
    option: RoutingOption, engine: str, night_start: datetime, day: RoutedDay, night: SimulatedNight | None
) -> OptionResult:
    stream, waiting, (peak_bytes, peak_seconds) = day.stream, [found.row for found in day.waiting], day.peak
    peak_at = night_start + timedelta(seconds=peak_seconds - DAY_SECONDS)
    batch_bytes = sum(row.bytes for row in waiting)
    converted = _converted(day, night, option.settings.convert.target_file_bytes)
    batch_latencies = night.latencies if night else Latencies()
    return OptionResult(
        option.name,
        engine,
        option.changes,
        LaneResult(
            stream.latencies.files,
            stream.bytes,
            day.stream_manifests,
            _latency(stream.latencies),
            _latency(stream.urgent_latencies),
        ),
        LaneResult(
            sum(row.files for row in waiting),
            batch_bytes,
            len(waiting),
            _latency(batch_latencies),
            LatencySeconds(None, None, None),
        ),
        day.router.spilled_files,
        day.router.ignored_files,
        peak_bytes,
        iso_utc(peak_at) if peak_bytes else None,
        _night(night) if night else None,
        _dollars(stream.dollars, night.dollars if night else 0.0, converted),
        max(map(sum, zip_longest(stream.dpus.values(), _dpus(night), fillvalue=0.0)), default=0.0),
    )


def _latency(found: Latencies) -> LatencySeconds:
    return LatencySeconds(*(found.percentile(share) for share in (0.5, 0.95, 0.99)))


def _night(night: SimulatedNight) -> NightResult:
    chosen, forecast = night.planned.night, night.planned.forecast
    late = (night.end - night.deadline).total_seconds() / 60
    return NightResult(
        iso_utc(night.start),
        iso_utc(night.end),
        iso_utc(night.deadline),
        late <= 0,
        iso_utc(night.end),
        iso_utc(night.end),
        round(max(late, 0.0), 1),
        len(night.planned.runs),
        chosen.concurrency,
        chosen.workers,
        chosen.worker_type,
        sum(len(run.manifests) for run in night.planned.runs),
        night.repeated_runs,
        forecast.minutes,
        forecast.dollars,
    )


def _dollars(stream: float, night: float, converted: CostShare) -> Dollars:
    other = estimate_shares([converted])
    exact = stream + night + other.total
    per_terabyte = exact / converted.bytes * TERABYTE if converted.bytes else 0.0
    total, month = round(exact, 2), round(exact * DAYS_OF_A_MONTH, 2)
    return Dollars(
        stream=round(stream, 2),
        night=round(night, 2),
        other=round(other.total, 2),
        total=total,
        low=total,
        high=total,
        month=month,
        month_low=month,
        month_high=month,
        per_terabyte=round(per_terabyte, 3),
        storage_month=round(other.storage_per_month, 2),
    )


def _dpus(night: SimulatedNight | None) -> list[float]:
    return night.dpus.values() if night else []


def _series(night_start: datetime, day: RoutedDay, night: SimulatedNight | None) -> Series:
    batch, waiting, last = Timeline(), 0, 0.0
    changes = [(found.queued, found.row.bytes) for found in day.waiting]
    changes += [(time, -size) for time, size in (night.published if night else ())]
    for time, size in sorted(changes):
        batch.add(last, time, waiting)
        waiting, last = waiting + size, time
    lines = (day.stream_backlog.values(), batch.values(), day.stream.dpus.values(), _dpus(night))
    return Series(iso_utc(night_start - timedelta(seconds=DAY_SECONDS)), *map(tuple, lines))
