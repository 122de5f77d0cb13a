"""``hybrid-router status``: what waits, what is wrong, whether the stream is alive, what tonight will look like."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

import typer

from cli.deployed_stack import DeployedStack
from cli.documents import Backlog, LastNight, MissedEvents, Nights, StatusDocument, StreamLane, StreamShard
from cli.errors import ExitCode
from cli.inspect.alarms import read_alarms
from cli.inspect.backlog import ShardState, read_open, read_shards
from cli.inspect.executions import RUNNING, NightSchedule, list_executions, planned_night, read_forecast, read_schedule
from cli.inspect.failures import count_dead_letters, list_failed_records
from cli.terminal import print_table, working
from lake.documents import find_document, format_json
from lake.layout import sweep_key
from lake.texts import format_clock, format_count, format_dollars, format_duration, format_size, printable, read_instant
from lake.time import iso_utc
from router.sweep.missed import HOUR_FORMAT, LISTING, OLD_DAYS

if TYPE_CHECKING:
    Clock = Callable[[str], str]
    """An instant, ISO 8601 -> its text on the clock of the stage."""


MAX_EXECUTIONS = 20
"""Executions that are read to find the last night: dry runs and running ones are passed over."""


def print_status(stack: DeployedStack, limit: int, *, as_json: bool) -> int:
    """Print the state of the stack, as a page or as one JSON document; the exit code.

    ``limit`` is the maximum number of manifests that are read of each lane and state.
    """
    now = datetime.now(UTC)
    with working("reading the ledger ..."):
        schedule = read_schedule(stack)
        document = status_document(stack, schedule, limit, now)
    if as_json:
        typer.echo(format_json(document))
    else:
        print_status_document(document, schedule.zone, now, stack.options, local=stack.local)
    return ExitCode.FINE


def status_document(stack: DeployedStack, schedule: NightSchedule, limit: int, now: datetime) -> StatusDocument:
    """The document of ``status``. The services are asked in parallel."""
    with ThreadPoolExecutor() as pool:
        opened = pool.submit(read_open, stack.ledger, limit, now)
        shards, nights = pool.submit(read_shards, stack), pool.submit(_nights, stack, schedule, now)
        alarms, missed = pool.submit(read_alarms, stack), pool.submit(_missed_events, stack, now)
        dead_letters = pool.submit(count_dead_letters, stack)
        failed_records = pool.submit(list_failed_records, stack, None)
        ignored = pool.submit(stack.ledger.ignored.groups)
    found = opened.result()
    open_alarms, without_state = alarms.result()
    return StatusDocument(
        stack=stack.name,
        read_at=iso_utc(now),
        complete=found.complete,
        backlog=found.backlogs,
        collected=found.collected,
        failed_manifests=found.failed,
        manifests_with_unreadable_files=found.unreadable,
        dead_letters=dead_letters.result(),
        failed_record_files=sum(group.files for group in failed_records.result()[0]),
        ignored_files=sum(group.files for group in ignored.result()[0]),
        missed_events=missed.result(),
        stream=_stream(shards.result(), [item for item in found.backlogs if item.lane == "stream"]),
        night=nights.result(),
        alarms=open_alarms,
        alarms_without_state=without_state,
    )


def _missed_events(stack: DeployedStack, now: datetime) -> MissedEvents | None:
    """How far the sweep has compared the input bucket with the ledger; None: no sweep has listed it yet."""
    search, old = (
        find_document(stack.s3, stack.resources.control_bucket, sweep_key(name)) or {} for name in (LISTING, OLD_DAYS)
    )
    until, old_until = (
        datetime.strptime(it["covered_until"], HOUR_FORMAT).replace(tzinfo=UTC) if it.get("covered_until") else None
        for it in (search, old)
    )
    if until is None:
        return None
    return MissedEvents(
        iso_utc(until),
        round((now - until).total_seconds()),
        iso_utc(old_until) if old_until else None,
        round((now - old_until).total_seconds()) if old_until else None,
        search["dataset"],
    )


def _stream(states: Sequence[ShardState], backlogs: Sequence[Backlog]) -> StreamLane:
    ages = [item.oldest_seconds for item in backlogs if item.oldest_seconds is not None]
    return StreamLane(
        lag_seconds=max(ages, default=None),
        queued=sum(item.states["QUEUED"] for item in backlogs),
        shards=tuple(map(_shard, states)),
    )


def _shard(state: ShardState) -> StreamShard:
    return StreamShard(
        shard=state.shard,
        running=bool(state.runs),
        run=state.runs[0] if state.runs else None,
        heartbeat_at=state.row.heartbeat_at,
        window_until=state.row.window_until,
        stop_requested=state.row.stop_requested,
        failed_starts=0 if state.runs else state.row.starts,
        start_failure=None if state.runs else state.row.start_failure,
        spilling=state.row.spilling,
    )


def _nights(stack: DeployedStack, schedule: NightSchedule, now: datetime) -> Nights:
    running, last = _executions(stack)
    start = schedule.next_start(now)
    return Nights(
        schedule=schedule.expression,
        time_zone=schedule.time_zone,
        enabled=schedule.enabled,
        next_start=iso_utc(start) if start else None,
        forecast=planned_night(read_forecast(stack, now)),
        running=running,
        last=last,
    )


def _executions(stack: DeployedStack) -> tuple[str | None, LastNight | None]:
    """The name of the execution that runs now, and the last one that has ended."""
    running = None
    for number, execution in enumerate(list_executions(stack)):
        if execution.status == RUNNING:
            running = running or execution.name
        elif execution.is_night:
            verdict = execution.verdict or {}
            return running, LastNight(
                execution=execution.name,
                outcome=execution.outcome,
                started_at=iso_utc(execution.started_at) if execution.started_at else None,
                ended_at=iso_utc(execution.ended_at) if execution.ended_at else None,
                rows=verdict.get("rows"),
                quarantined_lines=verdict.get("rejects"),
                unreadable_files=verdict.get("failed_files"),
            )
        if number >= MAX_EXECUTIONS:
            break
    return running, None


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
    if missed.old_days_covered_until and missed.old_days_behind_seconds is not None:
        text += f"; in folders of older days up to {clock(missed.old_days_covered_until)}"
        text += f", {format_duration(missed.old_days_behind_seconds)} ago"
    return f"{text}; listing {missed.dataset} now" if missed.dataset else text


def _stream_lines(stream: StreamLane, now: datetime, clock: Clock) -> Iterator[tuple[str, str]]:
    if len(stream.shards) == 1:
        yield "stream", _format_shard(stream.shards[0], stream.lag_seconds, now, clock)
        return
    number = f"of {format_count(len(stream.shards), 'shard')}"
    running = format_count(sum(shard.running for shard in stream.shards), f"{number} is", f"{number} are")
    oldest = "" if stream.lag_seconds is None else f", oldest manifest {format_duration(stream.lag_seconds)} old"
    yield "stream", f"{running} running{oldest}"
    for shard in stream.shards:
        yield "", f"shard {shard.shard}: {_format_shard(shard, None, now, clock)}"


def _format_shard(shard: StreamShard, lag_seconds: int | None, now: datetime, clock: Clock) -> str:
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
    dollars = format_dollars(forecast.dollars)
    if forecast.dollars_high > forecast.dollars_low:
        dollars += f" ({format_dollars(forecast.dollars_low)} to {format_dollars(forecast.dollars_high)})"
    return (
        f"{clock(forecast.start)} to {clock(forecast.end)}, {dollars}, "
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
