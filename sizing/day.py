"""One day and its night, in virtual time, for each way to route its files and each engine."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from lake.compression import has_compressed_name
from lake.counted import format_count
from lake.dataset_rules import matching_rule
from lake.manifest import Lane
from router.stream_control.spill import is_spilling
from sizing.arrivals import DAY_SECONDS
from sizing.assumptions import assumptions, dataset_speeds
from sizing.batch_lane import collect_backlog, simulate_night
from sizing.histogram import Timeline
from sizing.night_times import SWEEP_INTERVAL
from sizing.options import as_one_stream_job, routing_options, simulated_engines, with_engine
from sizing.result import OptionResult, Series, Simulation
from sizing.routing import Router
from sizing.schedule import stream_window
from sizing.speed import Speed
from sizing.stream_lane import StreamLane
from sizing.summary import summarise

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from datetime import datetime

    from lake.ledger import DatasetSpeed
    from lake.settings import Settings
    from sizing.arrivals import Arrivals
    from sizing.routing import SimulatedManifest


@dataclass(frozen=True, slots=True)
class Load:
    """What arrives in a day."""

    files: int
    bytes: int
    peak_core_seconds: float
    """Work on one core that arrives per second in the busiest hour."""
    kinds: tuple[tuple[str, bool], ...]
    """Each dataset, and whether it is about its compressed files; an empty name: no rule takes them."""


@dataclass(slots=True)
class RoutedDay:
    """The day until its night: what the stream lane did, and what is left for the night."""

    stream: StreamLane
    stream_manifests: int
    stream_end: float
    """When the stream lane is done, in seconds from the start of the day."""
    waiting: list[SimulatedManifest]
    router: Router
    peak: tuple[int, float]
    """Largest backlog of the stream lane, and when, in seconds from the start of the day."""
    stream_backlog: Timeline


def simulate(
    arrivals: Arrivals,
    settings: Settings,
    ratio: float,
    failing_share: float,
    log: Callable[[str], object],
    measured: Mapping[str, DatasetSpeed] | None = None,
) -> Simulation:
    """All options of a day.

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
    results: list[OptionResult] = []
    series: dict[str, Series] = {}
    for option in routing_options(settings, load.peak_core_seconds, speed.task_bytes):
        log(f"{option.name}: {format_count(load.files, 'file')}")
        day = route_day(arrivals, option.settings, speed, failing_share)
        backlog = collect_backlog(day.waiting, option.settings, arrivals.night - SWEEP_INTERVAL)
        engines = list(simulated_engines(settings)) if backlog.items else [None]
        for engine in engines:
            night_settings = option.settings if engine is None else with_engine(option.settings, engine)
            night = simulate_night(backlog, night_settings, arrivals.night, failing_share)
            name = engine.name if engine else ""
            result, lines = summarise(option, name, arrivals.night, day, night)
            results.append(result)
            series[f"{result.routing}/{result.engine}".rstrip("/")] = lines
    rests_on = list(assumptions(settings, ratio, stream_jobs))
    if measured is not None:
        rests_on += dataset_speeds(speed, load.kinds)
    return Simulation(load.files, load.bytes, tuple(results), series, tuple(rests_on))


def measure_load(arrivals: Arrivals, settings: Settings, speed: Speed) -> Load:
    """What arrives, before anything is decided."""
    files = size = 0
    hours = [0.0] * (DAY_SECONDS // 3600)
    rates: dict[tuple[str, bool], float] = {}
    for number, groups in enumerate(arrivals.windows()):
        for group in groups:
            files += group.count
            size += group.count * group.bytes
            kind = matching_rule(group.key, settings.datasets)[1], has_compressed_name(group.key)
            if kind not in rates:
                rates[kind] = speed.rate(*kind)
            hours[number * settings.input.event_window_seconds // 3600] += group.count * group.bytes / rates[kind]
    return Load(files, size, max(hours) / 3600, tuple(sorted(rates)))


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
    end = stream.finish()
    return RoutedDay(stream, manifests, end, waiting, router, peak, backlog)


def _window_seconds(settings: Settings, night: datetime) -> tuple[float, float] | None:
    found = stream_window(settings, night)
    if found is None:
        return None
    first = night - timedelta(seconds=DAY_SECONDS)
    start, end = ((instant - first).total_seconds() for instant in found)
    return max(start, 0.0), min(end, float(DAY_SECONDS))
