"""One day and its night, in virtual time, for each routing of its files."""

from collections.abc import Callable
from dataclasses import asdict, replace
from datetime import date, timedelta

from lake.dataset_rules import matching_rule
from lake.ledger import ManifestRow, State
from lake.manifest import Lane, Partition, has_compressed_name
from lake.settings import PriceSettings, Settings
from lake.speed import FAST, SLOW, Speeds
from lake.texts import format_count
from lake.time import iso_utc
from router.estimate.other_costs import Estimate, estimate_shares, expected_share
from router.plan.night import DIGITS, PlannedNight
from router.stream.spill import room_core_seconds, waiting_core_seconds
from sizing.arrivals import DAY_SECONDS, URGENT_KEYS, Arrivals, Profile, profile_arrivals
from sizing.assumptions import NOTHING_MEASURED, Measured, assumptions, compressed_speed
from sizing.batch_lane import divide_collections, simulate_night
from sizing.options import (
    RoutingOption,
    all_batch,
    night_start,
    one_stream_job,
    routing_options,
    stream_window,
)
from sizing.result import Dollars, LaneResult, Latencies, NightResult, OptionResult, Simulation
from sizing.routing import Router
from sizing.stream_lane import StreamLane


def simulate_profile(profile: Profile, settings: Settings, log: Callable[[str], object]) -> Simulation:
    """Simulate all options of a profile's day, and the night of the same rows as compressed files."""
    night, settings = night_start(settings, date.fromisoformat(profile.date)), at_ratio(settings, profile.gzip.ratio)
    if profile.urgent_share:
        # Also if the settings recognize urgent files by tags or by other keys.
        settings = replace(settings, urgent=replace(settings.urgent, keys=(URGENT_KEYS,)))
    found = simulate(profile_arrivals(profile, settings, night), settings, log)
    if profile.gzip.share:
        return found
    log("the same rows as gzip files")
    gzip = simulate_option(profile_arrivals(profile.as_gzip, settings, night), all_batch(settings))
    return replace(found, as_gzip=gzip if gzip.night and not gzip.night.forecast.late_minutes else None)


def at_ratio(settings: Settings, ratio: float) -> Settings:
    """Return the settings with the speed of files of this compression, unless they have a measured speed."""
    price = settings.price
    if price.compressed_mb_per_second_per_core != PriceSettings().compressed_mb_per_second_per_core:
        return settings
    return replace(settings, price=replace(price, compressed_mb_per_second_per_core=compressed_speed(price, ratio)))


def simulate(
    arrivals: Arrivals, settings: Settings, log: Callable[[str], object], measured: Measured = NOTHING_MEASURED
) -> Simulation:
    """Simulate all options of a day. ``log``: gets a sentence of progress for each option."""
    speeds = Speeds(measured.speeds, settings)
    groups = [group for window in arrivals.windows for group in window]
    files, size = sum(group.count for group in groups), sum(group.count * group.bytes for group in groups)
    options = []
    peak = busiest_hour(arrivals, settings, speeds)
    for option in routing_options(settings, peak):
        log(f"{option.name}: {format_count(files, 'file')}")
        options.append(simulate_option(arrivals, option, measured))
    keys = {group.key for group in groups}
    kinds = sorted({(matching_rule(key, settings.datasets)[1], has_compressed_name(key)) for key in keys})
    rests_on = assumptions(settings, measured, kinds, arrivals.gzip_ratio)
    return Simulation(files, size, tuple(options), tuple(rests_on))


def simulate_option(arrivals: Arrivals, option: RoutingOption, measured: Measured = NOTHING_MEASURED) -> OptionResult:
    settings = option.settings
    speeds = Speeds(measured.speeds, settings)
    stream, router, (peak_bytes, peak_seconds) = route_day(arrivals, settings, speeds)
    peak_at = arrivals.night + timedelta(seconds=peak_seconds - DAY_SECONDS)
    backlog = divide_collections(router.collected, settings.batch)
    waiting = [item.row for item in backlog]
    night = simulate_night(backlog, settings, speeds, arrivals.night, measured.waits)
    plan, latencies = night or (None, Latencies())
    stream_dollars = [stream.dollars]
    if stream.bytes:
        at = (speeds.at(share) for share in (FAST, SLOW))
        stream_dollars += [route_day(arrivals, settings, changed)[0].dollars for changed in at]
    target, ratio = settings.convert.target_file_bytes, arrivals.gzip_ratio
    size, files, packed = stream.bytes, round(stream.latencies.files), stream.compressed_bytes
    all_rows = ManifestRow("", State.DONE, Lane.STREAM, Partition("", "", 0), "", size, files, packed)
    in_stream = expected_share([all_rows], target, ratio)
    in_stream = replace(in_stream, manifests=stream.manifests, objects=stream.objects)
    converted = [in_stream, expected_share(waiting, target, ratio)]
    other = estimate_shares(converted, router.invocations, stream.manifests, stream.run_seconds)
    return OptionResult(
        option.name,
        option.changes,
        _lane(files, stream.bytes, stream.manifests, stream.latencies),
        stream.urgent_latencies.percentile(0.95),
        _lane(sum(row.files for row in waiting), sum(row.bytes for row in waiting), len(waiting), latencies),
        router.spilled_files,
        router.ignored_files,
        peak_bytes,
        iso_utc(peak_at) if peak_bytes else None,
        None if plan is None else NightResult(**asdict(plan.night), manifests=len(waiting), forecast=plan.forecast),
        _dollars(plan, other, stream_dollars),
    )


def _lane(files: int, size: int, manifests: int, found: Latencies) -> LaneResult:
    return LaneResult(files, size, manifests, found.percentile(0.5), found.percentile(0.95))


def _dollars(planned: PlannedNight | None, other: Estimate, stream: list[float]) -> Dollars:
    """``stream``: cost of the stream lane at the assumed speed, then at the other speeds."""
    low = night = high = 0.0
    if planned:
        low, night, high = planned.forecast.dollars_low, planned.forecast.dollars, planned.forecast.dollars_high
    return Dollars(
        stream=round(stream[0], DIGITS),
        night=night,
        other=round(other.total, DIGITS),
        total=round(stream[0] + night + other.total, DIGITS),
        low=round(min(stream) + low + other.total, DIGITS),
        high=round(max(stream) + high + other.total, DIGITS),
        storage_month=round(other.storage_per_month, DIGITS),
    )


def busiest_hour(arrivals: Arrivals, settings: Settings, speeds: Speeds) -> float:
    """Return the work on one core that arrives per second in the busiest hour."""
    hours = [0.0] * (DAY_SECONDS // 3600)
    for number, groups in enumerate(arrivals.windows):
        for group in groups:
            stored, dataset = group.count * group.bytes, matching_rule(group.key, settings.datasets)[1]
            packed, partition = stored if has_compressed_name(group.key) else 0, Partition(dataset, "", 0)
            row = ManifestRow("", State.QUEUED, Lane.STREAM, partition, "", stored, group.count, packed)
            hours[number * settings.input.event_window_seconds // 3600] += speeds.core_seconds(row)
    return max(hours) / 3600


def route_day(arrivals: Arrivals, settings: Settings, speeds: Speeds) -> tuple[StreamLane, Router, tuple[int, float]]:
    """Window after window, let route decide, the stream lane work, and its watch measure the backlog.

    Returns the lane, the router with the files left for the night, and the largest backlog of the lane: its bytes, and
    its time in seconds from the start of the day.
    """
    length, window = settings.input.event_window_seconds, None
    if (found := stream_window(settings, arrivals.night)) is not None:
        first = arrivals.night - timedelta(seconds=DAY_SECONDS)
        start, end = ((instant - first).total_seconds() for instant in found)
        window = max(start, 0.0), min(end, float(DAY_SECONDS))
    stream, jobs = StreamLane(settings, window), one_stream_job(settings.stream)
    router, peak = Router(settings, speeds, arrivals.night, arrivals.gzip_ratio), (0, 0.0)
    backlog = watched = 0.0
    for number, groups in enumerate(arrivals.windows):
        now = (number + 1.0) * length
        stream.advance(now)
        is_watched = window is not None and window[0] <= now <= window[1]
        if is_watched and now - watched >= settings.schedule.watch_seconds:
            backlog, watched = stream.backlog_core_seconds, now
        else:
            backlog = waiting_core_seconds(jobs, backlog, length, watched=is_watched)
        for manifest in router.route(number, groups, room_core_seconds(jobs, backlog)):
            stream.add(manifest)
        backlog += router.admitted_seconds
        peak = max(peak, (stream.backlog_bytes, now), key=lambda found: found[0])
    stream.finish()
    return stream, router, peak
