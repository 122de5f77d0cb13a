"""The document of ``status`` as a page for people."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

import typer

from cli.documents import Backlog, MissedEvents, Nights, StatusDocument, StreamLane, StreamShard
from cli.tables import print_table
from lake.texts import (
    format_clock,
    format_count,
    format_dollars,
    format_duration,
    format_size,
    printable,
    read_instant,
)

if TYPE_CHECKING:
    Clock = Callable[[str], str]
    """An instant, ISO 8601 -> its text on the clock of the stage."""


def print_status_document(
    document: StatusDocument, zone: ZoneInfo, now: datetime, options: str, *, local: bool = False
) -> None:
    """Print it; instants are on the wall clock of ``zone``, and the commands that it names have these options."""

    def clock(text: str) -> str:
        return format_clock(read_instant(text), zone, now)

    typer.echo(f"{document.stack}, times in {zone.key}")
    collected = document.collected
    if document.backlog:
        _print_backlog(document.backlog)
    if collected.files:
        files = f"{format_count(collected.files, 'file')}, {format_size(collected.bytes)}"
        typer.echo(f"collected  {files} since {collected.oldest_hour} UTC, divided when their hour is over")
    elif not document.backlog:
        typer.echo("backlog    nothing waits")
    if not document.complete:
        typer.echo("           only the first manifests of a long list are counted: pass a larger --limit")
    for name, text in (
        ("failures", _failures(document, options)),
        ("listing", _listing(document.missed_events, clock)),
        *_stream_lines(document.stream, now, clock),
        ("next night", _tonight(document.night, clock, options)),
        ("last night", _last_night(document.night, clock)),
    ):
        typer.echo(f"{name:<11}{printable(text)}")
    alarms = document.alarms
    typer.echo(f"{'alarms':<11}{_alarms(document, local=local)}")
    for alarm in alarms:
        typer.echo(f"           {alarm.name} since {clock(alarm.since)}: {printable(alarm.description)}")


def _alarms(document: StatusDocument, *, local: bool) -> str:
    number, unknown = len(document.alarms), document.alarms_without_state
    text = format_count(number, "open alarm") if number else "none is open"
    if not unknown:
        return text
    why = "the local cloud does not evaluate" if local else "CloudWatch has not evaluated yet"
    return f"{text}, but for {format_count(unknown, 'alarm')} that {why}"


def _print_backlog(rows: Iterable[Backlog]) -> None:
    print_table(
        "Backlog",
        ("lane", "dataset"),
        ("files", "size", "manifests", "in work", "blocked", "oldest"),
        (
            (
                row.lane,
                printable(row.dataset),
                f"{row.files:,}",
                format_size(row.bytes),
                f"{row.manifests:,}",
                f"{row.states['RUNNING'] + row.states['PUBLISHING']:,}",
                f"{row.blocked:,}",
                format_duration(row.oldest_seconds or 0),
            )
            for row in rows
        ),
    )


def _failures(document: StatusDocument, options: str) -> str:
    parts = []
    if document.failed_manifests:
        parts.append(f"{format_count(document.failed_manifests, 'manifest')} FAILED")
    if document.manifests_with_unreadable_files:
        parts.append(f"{format_count(document.manifests_with_unreadable_files, 'manifest')} with unreadable files")
    if blocked := sum(row.blocked for row in document.backlog):
        parts.append(f"{format_count(blocked, 'manifest')} blocked")
    if document.dead_letters:
        parts.append(f"{format_count(document.dead_letters, 'dead letter')}")
    if files := document.failed_record_files:
        parts.append(f"{format_count(files, 'file')} of records that Firehose could not deliver")
    if document.ignored_files:
        parts.append(f"{format_count(document.ignored_files, 'file')} ignored")
    return f"{', '.join(parts)}: 'hybrid-router failures{options}' says why" if parts else "none"


def _listing(missed: MissedEvents | None, clock: Clock) -> str:
    if missed is None:
        return "no sweep has searched for missed events yet"
    text = f"missed events are found up to {clock(missed.covered_until)}"
    text += f", {format_duration(missed.behind_seconds)} ago"
    return f"{text}; listing {missed.dataset} now" if missed.dataset else text


def _stream_lines(stream: StreamLane, now: datetime, clock: Clock) -> Iterator[tuple[str, str]]:
    if len(stream.shards) == 1:
        yield "stream", _stream(stream.shards[0], stream.lag_seconds, now, clock)
        return
    number = f"of {format_count(len(stream.shards), 'shard')}"
    running = format_count(sum(shard.running for shard in stream.shards), f"{number} is", f"{number} are")
    oldest = "" if stream.lag_seconds is None else f", oldest manifest {format_duration(stream.lag_seconds)} old"
    yield "stream", f"{running} running{oldest}"
    for shard in stream.shards:
        yield "", f"shard {shard.shard}: {_stream(shard, None, now, clock)}"


def _stream(shard: StreamShard, lag_seconds: int | None, now: datetime, clock: Clock) -> str:
    text = "not running"
    if shard.failed_starts:
        text += f", {format_count(shard.failed_starts, 'start')} in succession failed"
    if shard.start_failure:
        text += f": {shard.start_failure}"
    if shard.running:
        text = f"running ({shard.run})"
        if shard.heartbeat_at:
            age = (now - read_instant(shard.heartbeat_at)).total_seconds()
            text += f", heartbeat {format_duration(age)} ago"
        else:
            text += ", no heartbeat yet"
    if lag_seconds is not None:
        text += f", oldest manifest {format_duration(lag_seconds)} old"
    if shard.window_until and read_instant(shard.window_until) > now:
        text += f", window until {clock(shard.window_until)}"
    if shard.stop_requested:
        text += ", stop requested"
    return f"{text}, spilling to the batch lane" if shard.spilling else text


def _tonight(night: Nights, clock: Clock, options: str) -> str:
    forecast = night.forecast
    if not night.enabled:
        return "the schedule is disabled: no night begins by itself"
    if forecast is None:
        start = clock(night.next_start) if night.next_start else night.schedule
        return f"begins {start}; no forecast yet, one is made every hour: 'hybrid-router plan{options}' makes one now"
    if not forecast.runs:
        return f"begins {clock(forecast.start)}; nothing to convert, as of {clock(forecast.planned_at)}"
    fit = f"deadline {clock(forecast.deadline)}"
    if forecast.late_minutes:
        fit = f"TOO LATE by {format_duration(forecast.late_minutes * 60)}, {fit}"
    return (
        f"{clock(forecast.start)} to {clock(forecast.end)}, {format_dollars(forecast.dollars)}, "
        f"{format_count(forecast.files, 'file')} of {format_size(forecast.bytes)} in "
        f"{format_count(forecast.runs, 'run')} on {forecast.engine}; {fit}; as of {clock(forecast.planned_at)}"
    )


def _last_night(night: Nights, clock: Clock) -> str:
    last, running = night.last, night.running
    text = "none in the last 90 days"
    if last is not None:
        times = " to ".join(clock(time) for time in (last.started_at, last.ended_at) if time)
        text = f"{last.outcome}, {times}"
        counts = (
            (last.rows, "row"),
            (last.quarantined_lines, "quarantined line"),
            (last.unreadable_files, "unreadable file"),
        )
        text += "".join(f", {format_count(number, noun)}" for number, noun in counts if number is not None)
    return f"{text}; {running} is running now" if running else text
