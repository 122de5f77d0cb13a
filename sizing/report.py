"""A simulation as tables for people; times are those of the settings' time zone."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

from lake.counted import format_count

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from sizing.result import LaneResult, LatencySeconds, OptionResult, Simulation

NOTHING = "-"
_TIMES = ("start", "end", "deadline", "in time", "plan says")
NIGHT_COLUMNS = ("routing", "engine", *_TIMES, "runs", "side by side", "workers", "max DPU")


def report_lines(found: Simulation, time_zone: str) -> Iterator[str]:
    """Lanes, nights and dollars of every option, and all assumptions."""
    zone = ZoneInfo(time_zone)
    yield f"{format_count(found.files, 'file')}, {format_bytes(found.bytes)} a day; times in {time_zone}"
    yield ""
    yield "Lanes: latency from the arrival of a file until its rows can be read"
    yield from table(
        ("routing", "engine", "lane", "files", "input", "p50", "p95", "p99", "largest backlog", "at", "spilled"),
        list(dict.fromkeys(row for option in found.options for row in _lane_rows(option, zone))),
    )
    yield ""
    yield "Night"
    yield from table(
        NIGHT_COLUMNS,
        [_night_row(option, zone) for option in found.options if option.night],
    )
    yield ""
    yield "Dollars: billed time of the streaming job and of the night's runs"
    yield from table(
        ("routing", "engine", "stream", "night", "a day", "a month", "a TB"),
        [_dollar_row(option) for option in found.options],
    )
    yield ""
    for option in found.options:
        if option.changes and option.engine in ("", found.options[1].engine):
            yield f"{option.routing} differs from the settings: {', '.join(option.changes)}"
    if found.options[0].ignored_files:
        ignored = format_count(found.options[0].ignored_files, "file")
        yield f"ignored, because no rule of the settings takes them: {ignored}"
    yield ""
    yield "Assumptions; not included are S3 storage and requests, DynamoDB, Lambda and Step Functions"
    yield from table(
        ("value", "what", "known", "source"),
        [(f"{item.value:g} {item.unit}", item.name, item.basis.value, item.source) for item in found.assumptions],
    )


def _lane_rows(option: OptionResult, zone: ZoneInfo) -> Iterator[tuple[str, ...]]:
    lanes = (("stream", option.stream, 0), ("batch", option.batch, option.spilled_files))
    for name, lane, spilled in lanes:
        if lane.files:
            yield (
                option.routing,
                option.engine if name == "batch" else "",
                name,
                f"{lane.files:,}",
                format_bytes(lane.bytes),
                *_latencies(lane.latency_seconds),
                format_bytes(lane.peak_backlog_bytes),
                _peak_time(lane, zone),
                f"{spilled:,}" if spilled else NOTHING,
            )


def _latencies(found: LatencySeconds) -> tuple[str, ...]:
    return tuple(format_seconds(value) for value in (found.p50, found.p95, found.p99))


def _peak_time(lane: LaneResult, zone: ZoneInfo) -> str:
    return format_time(lane.peak_backlog_at, zone) if lane.peak_backlog_at else NOTHING


def _night_row(option: OptionResult, zone: ZoneInfo) -> tuple[str, ...]:
    night = option.night
    assert night is not None
    return (
        option.routing,
        option.engine,
        format_time(night.start, zone),
        format_time(night.end, zone),
        format_time(night.deadline, zone),
        "yes" if night.fits else f"{format_seconds(60 * night.late_minutes)} late",
        f"{format_seconds(60 * night.forecast_minutes)}, ${night.forecast_dollars:,.2f}",
        f"{night.runs:,}" + (f" + {night.repeated_runs:,} repeated" if night.repeated_runs else ""),
        f"{night.concurrency}",
        f"{night.workers} x {night.worker_type}",
        f"{option.max_dpus:.0f}",
    )


def _dollar_row(option: OptionResult) -> tuple[str, ...]:
    found = option.dollars
    amounts = (found.stream, found.night, found.total, found.month, found.per_terabyte)
    return (option.routing, option.engine, *(f"{amount:,.2f}" for amount in amounts))


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Columns of equal width, two spaces apart."""
    widths = [max(len(row[column]) for row in (header, *rows)) for column in range(len(header))]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in (header, *rows)
    ]


def format_bytes(size: float) -> str:
    """Decimal units, as AWS bills: ``1.52 PB``."""
    for unit, factor in (("PB", 1e15), ("TB", 1e12), ("GB", 1e9), ("MB", 1e6)):
        if size >= factor:
            return f"{size / factor:.3g} {unit}"
    return f"{size:.0f} B"


def format_seconds(seconds: float | None) -> str:
    """``37 s``, ``12 min`` or ``15.4 h``."""
    if seconds is None:
        return NOTHING
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"


def format_time(text: str, zone: ZoneInfo) -> str:
    """Local day of the week and time."""
    return f"{datetime.fromisoformat(text).astimezone(zone):%a %H:%M}"
