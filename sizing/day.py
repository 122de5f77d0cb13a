"""One day and its night, in virtual time, for each way to route its files."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta

from lake.compression import has_compressed_name
from lake.dataset_rules import matching_rule
from lake.ledger import CostShare
from lake.manifest import Lane
from lake.settings import Settings
from lake.speed import FAST, SLOW
from lake.texts import format_count
from lake.time import iso_utc
from router.estimate.other_costs import OUTPUT_RATIO, estimate_shares
from router.stream.spill import room_core_seconds, waiting_core_seconds
from sizing.arrivals import DAY_SECONDS, Arrivals, ProfileArrivals
from sizing.assumptions import NOTHING_MEASURED, Measured, Speed, assumptions, dataset_speeds, measured_waits
from sizing.batch_lane import SimulatedNight, collect_backlog, simulate_night
from sizing.options import ALL_BATCH, RoutingOption, as_one_stream_job, night_start, routing_options, stream_window
from sizing.profile import Profile
from sizing.result import Dollars, LaneResult, Latencies, LatencySeconds, NightResult, OptionResult, Simulation
from sizing.routing import Router, SimulatedManifest
from sizing.stream_lane import StreamLane

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
    """What each invocation has received for the night."""
    peak: tuple[int, float]
    """Largest backlog of the stream lane in bytes, and when, in seconds from the start of the day."""


def simulate_profile(profile: Profile, settings: Settings, log: Callable[[str], object]) -> Simulation:
    """All options of a profile's day, and the night of the same rows as gzip files."""
    night, ratio = night_start(settings, date.fromisoformat(profile.date)), profile.gzip.ratio
    found = simulate(ProfileArrivals(profile, settings, night), settings, ratio, log)
    if profile.gzip.share:
        return found
    log("the same rows as gzip files")
    sizes = tuple(replace(size, bytes=max(round(size.bytes / ratio), 1)) for size in profile.sizes)
    arrivals = ProfileArrivals(replace(profile, sizes=sizes, gzip=replace(profile.gzip, share=1.0)), settings, night)
    (gzip,) = simulate_at(arrivals, settings, Speed.of(settings, ratio), lambda _: None, only=ALL_BATCH)
    return replace(found, as_gzip=gzip if gzip.night and gzip.night.fits else None)


def simulate(
    arrivals: Arrivals,
    settings: Settings,
    ratio: float,
    log: Callable[[str], object],
    measured: Measured | None = None,
) -> Simulation:
    """All options of a day, at the assumed speed, and their dollars and ends at a lower and at a higher one.

    ``ratio``: bytes of NDJSON for each byte of a compressed file. ``log``: gets a sentence of progress for each option.
    ``measured``: by the ledger; None: there is no ledger, and speeds and waits are assumed.
    """
    by_ledger = measured or NOTHING_MEASURED
    stream_jobs, settings = settings.stream.jobs, as_one_stream_job(settings)
    speed = Speed.of(settings, ratio, by_ledger.speeds)
    load = measure_load(arrivals, settings, speed)
    options = simulate_at(arrivals, settings, speed, log, by_ledger.waits)
    if not all(speed.is_measured(*kind) for kind in load.kinds):
        ends = []
        for share in (FAST, SLOW):
            log(f"the same with S3 read {share:g} times as fast")
            price = replace(settings.price, mb_per_second_per_core=share * settings.price.mb_per_second_per_core)
            changed = replace(settings, price=price)
            at_share = Speed.of(changed, ratio, by_ledger.speeds)
            ends.append(simulate_at(arrivals, changed, at_share, lambda _: None, by_ledger.waits))
        options = list(map(_with_range, options, *ends))
    rests_on = list(assumptions(settings, ratio, stream_jobs))
    if measured is not None:
        rests_on += [*measured_waits(measured.waits), *dataset_speeds(speed, load.kinds)]
    return Simulation(load.files, load.bytes, tuple(options), tuple(rests_on))


def _with_range(found: OptionResult, fast: OptionResult, slow: OptionResult) -> OptionResult:
    """The option with the dollars and the end that it has when S3 is read faster and slower than assumed."""
    all_three = [option.dollars for option in (fast, found, slow)]
    days, months = ([getattr(dollars, name) for dollars in all_three] for name in ("total", "month"))
    dollars = replace(found.dollars, low=min(days), high=max(days), month_low=min(months), month_high=max(months))
    night = found.night
    if night and fast.night and slow.night:
        night = replace(night, end_low=fast.night.end, end_high=slow.night.end)
    return replace(found, night=night, dollars=dollars)


def simulate_at(
    arrivals: Arrivals,
    settings: Settings,
    speed: Speed,
    log: Callable[[str], object],
    waits: Mapping[str, float] | None = None,
    only: str | None = None,
) -> list[OptionResult]:
    """The options at one speed; ``waits``: what ``offers`` takes; ``only`` one way to route, by its name."""
    load = measure_load(arrivals, settings, speed)
    found = []
    for option in routing_options(settings, load.peak_core_seconds):
        if only in (None, option.name):
            log(f"{option.name}: {format_count(load.files, 'file')}")
            day = route_day(arrivals, option.settings, speed)
            backlog = collect_backlog(day.waiting, option.settings)
            night = simulate_night(backlog, option.settings, arrivals.night, waits)
            found.append(_result(option, arrivals.night, day, night))
    return found


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


def route_day(arrivals: Arrivals, settings: Settings, speed: Speed) -> RoutedDay:
    """Window after window: route decides, the stream lane works, its watch measures the backlog."""
    router = Router(settings, speed, arrivals.night)
    window, length = _window_seconds(settings, arrivals.night), settings.input.event_window_seconds
    stream = StreamLane(settings, window)
    waiting: list[SimulatedManifest] = []
    peak, backlog, manifests, watched = (0, 0.0), 0.0, 0, 0.0
    for number, groups in enumerate(arrivals.windows()):
        now = (number + 1.0) * length
        stream.advance(now)
        if window and window[0] <= now <= window[1] and now - watched >= settings.schedule.watch_seconds:
            backlog, watched = stream.backlog_core_seconds, now
        else:
            backlog = waiting_core_seconds(settings.stream, backlog, length)
        for manifest in router.route(number, groups, room_core_seconds(settings.stream, backlog)):
            if manifest.row.lane == Lane.STREAM:
                stream.add(manifest)
                manifests += manifest.manifests
            else:
                waiting.append(manifest)
        backlog += router.admitted_seconds
        if stream.backlog_bytes > peak[0]:
            peak = (stream.backlog_bytes, now)
    stream.finish()
    return RoutedDay(stream, router, manifests, waiting, peak)


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
        manifests=day.stream_manifests + planned,
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


def _result(option: RoutingOption, night_start: datetime, day: RoutedDay, night: SimulatedNight | None) -> OptionResult:
    stream, waiting, (peak_bytes, peak_seconds) = day.stream, [found.row for found in day.waiting], day.peak
    peak_at = night_start + timedelta(seconds=peak_seconds - DAY_SECONDS)
    batch_bytes = sum(row.bytes for row in waiting)
    converted = _converted(day, night, option.settings.convert.target_file_bytes)
    batch_latencies = night.latencies if night else Latencies()
    return OptionResult(
        option.name,
        night.planned.night.engine.value if night else "",
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
            sum(found.manifests for found in day.waiting),
            _latency(batch_latencies),
            LatencySeconds(None, None, None),
        ),
        day.router.spilled_files,
        day.router.ignored_files,
        peak_bytes,
        iso_utc(peak_at) if peak_bytes else None,
        _night(night) if night else None,
        _dollars(stream.dollars, night.dollars if night else 0.0, converted, day.router.invocations),
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
        forecast.minutes,
        forecast.dollars,
    )


def _dollars(stream: float, night: float, converted: CostShare, invocations: int) -> Dollars:
    other = estimate_shares([converted], invocations=invocations)
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
