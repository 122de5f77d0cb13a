"""The document of ``status`` as a page for people."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import typer

from cli.format_values import (
    format_dollars,
    format_duration,
    format_instant,
    read_instant,
)
from cli.tables import print_table
from lake.counted import format_count
from lake.printable import printable
from report.texts import format_size

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from datetime import datetime
    from zoneinfo import ZoneInfo


def print_status_document(
    document: Mapping[str, Any], zone: ZoneInfo, now: datetime, options: str, *, local: bool = False
) -> None:
    """Print it; instants are on the wall clock of ``zone``, and the commands that it names have these options."""

    def clock(text: str) -> str:
        return format_instant(read_instant(text), zone, now)

    typer.echo(f"{document['stack']}, times in {zone.key}")
    if document["backlog"]:
        _print_backlog(document["backlog"])
    else:
        typer.echo("backlog    nothing waits")
    if not document["complete"]:
        typer.echo("           only the first manifests of a long list are counted: pass a larger --limit")
    for name, text in (
        ("failures", _failures(document, options)),
        ("listing", _listing(document["missedEvents"], clock)),
        *_stream_lines(document["stream"], now, clock),
        ("next night", _tonight(document["night"], clock, options)),
        ("last night", _last_night(document["night"], clock)),
    ):
        typer.echo(f"{name:<11}{printable(text)}")
    alarms = document["alarms"]
    typer.echo(f"{'alarms':<11}{_alarms(document, local=local)}")
    for alarm in alarms:
        typer.echo(f"           {alarm['name']} since {clock(alarm['since'])}: {printable(alarm['description'])}")


def _alarms(document: Mapping[str, Any], *, local: bool) -> str:
    number, unknown = len(document["alarms"]), document["alarmsWithoutState"]
    text = format_count(number, "open alarm") if number else "none is open"
    if not unknown:
        return text
    why = "the local cloud does not evaluate" if local else "CloudWatch has not evaluated yet"
    return f"{text}, but for {format_count(unknown, 'alarm')} that {why}"


def _print_backlog(rows: Iterable[Mapping[str, Any]]) -> None:
    print_table(
        "Backlog",
        ("lane", "dataset"),
        ("files", "size", "manifests", "in work", "blocked", "oldest"),
        (
            (
                row["lane"],
                printable(row["dataset"]),
                f"{row['files']:,}",
                format_size(row["bytes"]),
                f"{row['manifests']:,}",
                f"{row['states']['RUNNING'] + row['states']['PUBLISHING']:,}",
                f"{row['blocked']:,}",
                format_duration(row["oldestSeconds"]),
            )
            for row in rows
        ),
    )


def _failures(document: Mapping[str, Any], options: str) -> str:
    parts = []
    if document["failedManifests"]:
        parts.append(f"{format_count(document['failedManifests'], 'manifest')} FAILED")
    if document["manifestsWithUnreadableFiles"]:
        parts.append(f"{format_count(document['manifestsWithUnreadableFiles'], 'manifest')} with unreadable files")
    if blocked := sum(row["blocked"] for row in document["backlog"]):
        parts.append(f"{format_count(blocked, 'manifest')} blocked")
    if document["deadLetters"]:
        parts.append(f"{format_count(document['deadLetters'], 'dead letter')}")
    if files := document["failedRecordFiles"]:
        parts.append(f"{format_count(files, 'file')} of records that Firehose could not deliver")
    return f"{', '.join(parts)}: 'hybrid-router failures{options}' says why" if parts else "none"


def _listing(missed: Mapping[str, Any] | None, clock: Any) -> str:  # noqa: ANN401
    if missed is None:
        return "no sweep has searched for missed events yet"
    text = f"missed events are found up to {clock(missed['coveredUntil'])}"
    text += f", {format_duration(missed['behindSeconds'])} ago"
    return f"{text}; listing {missed['dataset']} now" if missed["dataset"] else text


def _stream_lines(stream: Mapping[str, Any], now: datetime, clock: Any) -> Iterator[tuple[str, str]]:  # noqa: ANN401
    if len(stream["shards"]) == 1:
        yield "stream", _stream(stream, now, clock)
        return
    number = f"of {format_count(len(stream['shards']), 'shard')}"
    running = format_count(sum(shard["running"] for shard in stream["shards"]), f"{number} is", f"{number} are")
    oldest = "" if stream["lagSeconds"] is None else f", oldest manifest {format_duration(stream['lagSeconds'])} old"
    yield "stream", f"{running} running{oldest}"
    for shard in stream["shards"]:
        yield "", f"shard {shard['shard']}: {_stream({'lagSeconds': None, **shard}, now, clock)}"


def _stream(stream: Mapping[str, Any], now: datetime, clock: Any) -> str:  # noqa: ANN401
    text = "not running"
    if stream["failedStarts"]:
        text += f", {format_count(stream['failedStarts'], 'start')} in succession failed"
    if stream["startFailure"]:
        text += f": {stream['startFailure']}"
    if stream["running"]:
        text = f"running ({stream['run']})"
        if stream["heartbeatAt"]:
            age = (now - read_instant(stream["heartbeatAt"])).total_seconds()
            text += f", heartbeat {format_duration(age)} ago"
        else:
            text += ", no heartbeat yet"
    if stream["lagSeconds"] is not None:
        text += f", oldest manifest {format_duration(stream['lagSeconds'])} old"
    if stream["windowUntil"] and read_instant(stream["windowUntil"]) > now:
        text += f", window until {clock(stream['windowUntil'])}"
    if stream["stopRequested"]:
        text += ", stop requested"
    return f"{text}, spilling to the batch lane" if stream["spilling"] else text


def _tonight(night: Mapping[str, Any], clock: Any, options: str) -> str:  # noqa: ANN401
    forecast = night["forecast"]
    if not night["enabled"]:
        return "the schedule is disabled: no night begins by itself"
    if forecast is None:
        start = clock(night["nextStart"]) if night["nextStart"] else night["schedule"]
        return f"begins {start}; no forecast yet, one is made every hour: 'hybrid-router plan{options}' makes one now"
    if not forecast["runs"]:
        return f"begins {clock(forecast['start'])}; nothing to convert, as of {clock(forecast['plannedAt'])}"
    fit = f"deadline {clock(forecast['deadline'])}"
    if forecast["lateMinutes"]:
        fit = f"TOO LATE by {format_duration(forecast['lateMinutes'] * 60)}, {fit}"
    return (
        f"{clock(forecast['start'])} to {clock(forecast['end'])}, {format_dollars(forecast['dollars'])}, "
        f"{format_count(forecast['files'], 'file')} of {format_size(forecast['bytes'])} in "
        f"{format_count(forecast['runs'], 'run')} on {forecast['engine']}; {fit}; as of {clock(forecast['plannedAt'])}"
    )


def _last_night(night: Mapping[str, Any], clock: Any) -> str:  # noqa: ANN401
    last, running = night["last"], night["running"]
    text = "none in the last 90 days"
    if last is not None:
        times = " to ".join(clock(last[name]) for name in ("startedAt", "endedAt") if last[name])
        text = f"{last['outcome']}, {times}"
        if last["rows"] is not None:
            text += (
                f", {format_count(last['rows'], 'row')}, {format_count(last['quarantinedLines'], 'quarantined line')}, "
            )
            text += format_count(last["unreadableFiles"], "unreadable file")
    return f"{text}; {running} is running now" if running else text
