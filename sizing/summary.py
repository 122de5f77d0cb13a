"""A routed day and its night as the figures of one option."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from lake.time import iso_utc
from sizing.arrivals import DAY_SECONDS
from sizing.histogram import Latencies, Timeline
from sizing.result import Dollars, LaneResult, LatencySeconds, NightResult, OptionResult, Series

if TYPE_CHECKING:
    from datetime import datetime

    from sizing.batch_lane import SimulatedNight
    from sizing.day import RoutedDay
    from sizing.options import RoutingOption

TERABYTE = 10**12
DAYS_OF_A_MONTH = 30


def summarise(
    option: RoutingOption,
    engine: str,
    night_start: datetime,
    day: RoutedDay,
    night: SimulatedNight | None,
) -> tuple[OptionResult, Series]:
    """The figures of an option, and its lines over time; ``engine`` is the name of that of its night."""
    first = night_start - timedelta(seconds=DAY_SECONDS)
    batch_backlog, batch_peak = _batch_backlog(day, night)
    stream_bytes, batch_bytes = day.stream.bytes, sum(found.row.bytes for found in day.waiting)
    night_dpus = night.dpus if night else Timeline()
    peak_bytes, peak_time = day.peak
    result = OptionResult(
        option.name,
        engine,
        option.changes,
        LaneResult(
            day.stream.latencies.files,
            stream_bytes,
            day.stream_manifests,
            _latency(day.stream.latencies),
            peak_bytes,
            iso_utc(first + timedelta(seconds=peak_time)) if peak_bytes else None,
        ),
        LaneResult(
            sum(found.row.files for found in day.waiting),
            batch_bytes,
            len(day.waiting),
            _latency(night.latencies if night else Latencies()),
            batch_peak,
            iso_utc(night_start) if batch_peak else None,
        ),
        day.router.spilled_files,
        day.router.ignored_files,
        iso_utc(first + timedelta(seconds=day.stream_end)) if day.stream_manifests else None,
        _night(night, engine) if night else None,
        _dollars(day, night, stream_bytes + batch_bytes),
        max(_sum(day.stream.dpus.values(), night_dpus.values()), default=0.0),
    )
    lines = Series(
        iso_utc(first),
        Timeline.STEP_SECONDS,
        tuple(day.stream_backlog.values()),
        tuple(batch_backlog.values()),
        tuple(day.stream.dpus.values()),
        tuple(night_dpus.values()),
    )
    return result, lines


def _latency(found: Latencies) -> LatencySeconds:
    return LatencySeconds(*(found.percentile(share) for share in (0.5, 0.95, 0.99, 1.0)))


def _night(night: SimulatedNight, engine: str) -> NightResult:
    chosen, forecast = night.planned.night, night.planned.forecast
    late = (night.end - night.deadline).total_seconds() / 60
    return NightResult(
        engine,
        iso_utc(night.start),
        iso_utc(night.end),
        iso_utc(night.deadline),
        late <= 0,
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


def _dollars(day: RoutedDay, night: SimulatedNight | None, size: int) -> Dollars:
    stream = day.stream.dollars
    runs = night.dollars if night else 0.0
    total = stream + runs
    return Dollars(
        round(stream, 2),
        round(runs, 2),
        round(total, 2),
        round(total * DAYS_OF_A_MONTH, 2),
        round(total / size * TERABYTE, 3) if size else 0.0,
    )


def _batch_backlog(day: RoutedDay, night: SimulatedNight | None) -> tuple[Timeline, int]:
    """Bytes of the batch lane that wait, over time, and their maximum: the start of the night."""
    line, waiting, last = Timeline(), 0, 0.0
    changes = [(found.queued, found.row.bytes) for found in day.waiting]
    changes += [(time, -size) for time, size in (night.published if night else ())]
    for time, size in sorted(changes):
        line.add(last, time, waiting)
        waiting, last = waiting + size, time
    return line, sum(found.row.bytes for found in day.waiting)


def _sum(first: list[float], second: list[float]) -> list[float]:
    length = max(len(first), len(second))
    return [sum(values[number] for values in (first, second) if number < len(values)) for number in range(length)]
