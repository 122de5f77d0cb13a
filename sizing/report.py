"""A simulation as tables for people; times are those of the settings' time zone."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

from lake.counted import format_count
from lake.format_values import format_dollars, format_duration, format_size
from router.estimate.speed import FAST, SLOW

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from sizing.result import LaneResult, OptionResult, Simulation

NOTHING = "-"


@dataclass(frozen=True, slots=True)
class Table:
    """Rows below their headers."""

    title: str
    names: Sequence[str]
    """Headers of the first columns."""
    numbers: Sequence[str]
    """Headers of the last columns, which are aligned right."""
    rows: Sequence[Sequence[str]]


def options_table(found: Simulation, time_zone: str) -> Table:
    """What each routing comes to with its cheapest engine: input and latency, the end of the night, dollars."""
    zone = ZoneInfo(time_zone)
    title = f"{format_count(found.files, 'file')}, {format_size(found.bytes)} a day; times in {time_zone}"
    names = ("routing", "engine of the night", "in the stream", "p50, p95", "urgent p95", "overnight", "p50, p95")
    numbers = ("night ends", "$ a day", "of it requests", "$ a month", "low to high")
    return Table(title, names, numbers, [_option_row(option, zone) for option in best_options(found)])


def best_options(found: Simulation) -> list[OptionResult]:
    """Of each routing the cheapest option that ends in time; the soonest if none does."""
    best: dict[str, OptionResult] = {}
    for option in found.options:
        if option.routing not in best or _rank(option) < _rank(best[option.routing]):
            best[option.routing] = option
    return list(best.values())


def _rank(option: OptionResult) -> tuple[float, float]:
    return (option.night.late_minutes if option.night else 0.0, option.dollars.total)


def nights_table(found: Simulation, time_zone: str) -> Table:
    """The night of each routing on each engine, its plan, and whether it ends before its deadline."""
    zone = ZoneInfo(time_zone)
    names = ("routing", "engine", "ends, low to high", "in time", "plan says", "runs", "side by side", "workers")
    rows = [_night_row(option, zone) for option in found.options if option.night]
    return Table("Nights", names, ("max DPU", "$ a day", "$ a month"), rows)


def assumptions_table(found: Simulation) -> Table:
    """Every value that the figures rest on, how it is known, and where it comes from."""
    title = "Assumptions"
    rows = [
        (f"{item.value:g} {item.unit}".strip(), item.name, item.basis.value, item.source) for item in found.assumptions
    ]
    return Table(title, ("value", "what", "known", "source"), (), rows)


def notes(found: Simulation, time_zone: str) -> Iterator[str]:
    """Sentences on storage, the range, gzip, and each routing: its own settings, largest backlog, spilled files."""
    best = best_options(found)
    yield (
        f"what a day has written costs {format_dollars(max(option.dollars.storage_month for option in best))} for each "
        "month that it is kept; that is in no other figure"
    )
    if any(option.dollars.high > option.dollars.low for option in best):
        yield (
            f"low to high: S3 read {FAST:g} to {SLOW:g} times as fast as assumed. No one has measured it: the first "
            "night replaces it (simulate --from-ledger)"
        )
    if found.as_gzip:
        plain = min(option.dollars.month for option in best if option.routing == found.as_gzip.routing)
        gzip = found.as_gzip.dollars
        yield (
            f"as gzip files from whoever writes them, {found.as_gzip.routing} on {found.as_gzip.engine} takes "
            f"${gzip.month:,.0f} a month, not ${plain:,.0f}, and input takes {format_size(found.as_gzip.batch.bytes)}"
        )
    for option in {option.routing: option for option in found.options}.values():
        if option.changes:
            yield f"{option.routing} differs from the settings: {', '.join(option.changes)}"
        if option.peak_backlog_at:
            at = datetime.fromisoformat(option.peak_backlog_at).astimezone(ZoneInfo(time_zone))
            spilled = f"; spilled: {format_count(option.spilled_files, 'file')}" if option.spilled_files else ""
            backlog = format_size(option.peak_backlog_bytes)
            yield f"{option.routing}: largest backlog of the stream lane {backlog}, {at:%a %H:%M}{spilled}"
    if ignored := found.options[0].ignored_files:
        yield f"ignored, because no rule of the settings takes them: {format_count(ignored, 'file')}"


def _option_row(option: OptionResult, zone: ZoneInfo) -> tuple[str, ...]:
    dollars, end, urgent = option.dollars, NOTHING, option.stream.urgent_seconds.p95
    if option.night:
        late = "" if option.night.fits else f", {format_duration(60 * option.night.late_minutes)} late"
        end = f"{datetime.fromisoformat(option.night.end).astimezone(zone):%H:%M}{late}"
    return (
        option.routing,
        option.engine or NOTHING,
        *_lane_cells(option.stream),
        NOTHING if urgent is None else format_duration(urgent),
        *_lane_cells(option.batch),
        end,
        f"{dollars.total:,.2f}",
        f"{dollars.other:,.2f}",
        f"{dollars.month:,.0f}",
        f"{dollars.month_low:,.0f} to {dollars.month_high:,.0f}",
    )


def _lane_cells(lane: LaneResult) -> tuple[str, str]:
    latency = (lane.latency_seconds.p50, lane.latency_seconds.p95)
    if not lane.files:
        return NOTHING, NOTHING
    return format_size(lane.bytes), ", ".join(format_duration(seconds or 0.0) for seconds in latency)


def _night_row(option: OptionResult, zone: ZoneInfo) -> tuple[str, ...]:
    night = option.night
    assert night is not None
    return (
        option.routing,
        option.engine,
        ", ".join(f"{datetime.fromisoformat(end).astimezone(zone):%H:%M}" for end in (night.end_low, night.end_high)),
        "yes" if night.fits else f"{format_duration(60 * night.late_minutes)} late",
        f"{format_duration(60 * night.forecast_minutes)}, {format_dollars(night.forecast_dollars)}",
        f"{night.runs:,}" + (f" + {night.repeated_runs:,} repeated" if night.repeated_runs else ""),
        f"{night.concurrency}",
        f"{night.workers} x {night.worker_type}",
        f"{option.max_dpus:.0f}",
        f"{option.dollars.total:,.2f}",
        f"{option.dollars.month:,.0f}",
    )
