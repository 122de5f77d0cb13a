"""The effect of settings on a day: its night and window, its streaming workers, and its routings. Pure."""

import math
from dataclasses import dataclass, replace
from datetime import date, datetime, time, timedelta
from zoneinfo import ZoneInfo

from lake.engines.description import WORKERS, max_workers
from lake.errors import InvalidInputError
from lake.settings import DatasetUrgentSettings, Settings, StreamSettings
from lake.settings.lanes import MAX_LATENCY_GOAL_SECONDS
from lake.settings.routing import DAYS
from lake.time import Schedule, next_local_time
from router.estimate.night import DRIVERS


def night_start(settings: Settings, day: date) -> datetime:
    """Return the start of the night (aware) on a local date.

    Raises ``InvalidInputError`` if ``schedule.overnight`` is not one time of the day, or not on this day of the week.
    """
    zone = ZoneInfo(settings.time_zone)
    midnight = datetime.combine(day, time(), zone)
    start = _start_from("schedule.overnight", settings.schedule.overnight, midnight, settings.time_zone)
    if start is None or start.astimezone(zone).date() != day:
        raise InvalidInputError(
            f"no night begins on {day:%Y-%m-%d}, a {day:%A}: schedule.overnight = {settings.schedule.overnight!r}; "
            "pass the date of another night"
        )
    return start


def stream_window(settings: Settings, night: datetime) -> tuple[datetime, datetime] | None:
    """Return the stream window that begins in the 24 hours before the night (aware); None if there is none."""
    if not settings.peak.hours or not settings.peak.days:
        return None
    schedule, zone, first = settings.schedule, settings.time_zone, night - timedelta(days=1)
    begin = _start_from("schedule.stream_start", schedule.stream_start, first, zone)
    if begin is None or begin >= night:
        return None
    if schedule.stream_end == "24:00" and begin.astimezone(ZoneInfo(zone)).time() == time():
        return first, night
    return begin, next_local_time(schedule.stream_end, zone, begin)


def _start_from(key: str, expression: str, first: datetime, time_zone: str) -> datetime | None:
    """Return the first start (UTC) of a schedule from an instant (aware) on."""
    schedule = Schedule.parse(expression)
    if schedule.minute is None or schedule.days is None:
        raise InvalidInputError(
            f"{key} = {expression!r} cannot be simulated: pass settings in which it is one time of the day, such as "
            "cron(0 22 * * ? *) or cron(45 7 ? * MON-FRI *)"
        )
    return schedule.next_start(time_zone, first - timedelta.resolution)


ALL_STREAM, ALL_BATCH, HYBRID = "all-stream", "all-batch", "hybrid"
STREAM_RESERVE = 1.5
"""Capacity of an all-stream cluster, as a multiple of the input of the busiest hour."""


@dataclass(frozen=True, slots=True)
class RoutingOption:
    name: str
    settings: Settings
    changes: tuple[str, ...]


def routing_options(settings: Settings, peak_core_seconds: float) -> list[RoutingOption]:
    """Return three routings: all files through the stream lane, all overnight, and by the settings.

    ``peak_core_seconds``: work on one core that arrives per second in the busiest hour.
    """
    return [_all_stream(settings, peak_core_seconds), all_batch(settings), RoutingOption(HYBRID, settings, ())]


def one_stream_job(stream: StreamSettings) -> StreamSettings:
    """Return settings with one streaming job instead of several, with all their executors."""
    return replace(stream, jobs=1, max_workers=DRIVERS + stream.jobs * (stream.max_workers - DRIVERS))


def all_batch(settings: Settings) -> RoutingOption:
    changed = replace(
        settings,
        peak=replace(settings.peak, hours=()),
        urgent=replace(settings.urgent, keys=()),
        datasets=tuple(replace(rule, urgent=DatasetUrgentSettings()) for rule in settings.datasets),
    )
    no_rules = () if changed.datasets == settings.datasets else ("no datasets.urgent",)
    return RoutingOption(ALL_BATCH, changed, ("peak.hours = []", "urgent.keys = []", *no_rules))


def _all_stream(settings: Settings, peak_core_seconds: float) -> RoutingOption:
    stream, quota = settings.stream, settings.quota
    executors = stream.jobs * (stream.max_workers - DRIVERS)
    needed = math.ceil(STREAM_RESERVE * peak_core_seconds / WORKERS[stream.worker_type])
    workers = DRIVERS + math.ceil(max(needed, executors) / stream.jobs)
    changed = replace(
        settings,
        peak=replace(settings.peak, hours=("00:00-24:00",), days=DAYS),
        datasets=tuple(replace(rule, peak=True) for rule in settings.datasets),
        stream=replace(
            stream,
            max_workers=min(workers, max_workers(stream.worker_type)),
            latency_goal_seconds=MAX_LATENCY_GOAL_SECONDS,
        ),
        schedule=replace(settings.schedule, stream_start="cron(0 0 * * ? *)", stream_end="24:00"),
    )
    dpus = math.ceil(changed.stream_dpus + settings.run_dpus * (1 + settings.max_verifications))
    changed = replace(changed, quota=replace(quota, dpus=max(dpus, quota.dpus)))
    changes = (
        "peak hours all day, no spilling",
        f"stream.max_workers = {changed.stream.max_workers}",
        *([f"quota.dpus = {dpus}"] if dpus > quota.dpus else []),
    )
    return RoutingOption(ALL_STREAM, changed, changes)
