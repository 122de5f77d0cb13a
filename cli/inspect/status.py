"""``hybrid-router status``: the backlog, failures, the state of the stream, the forecast of tonight."""

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import islice, product
from typing import Any
from zoneinfo import ZoneInfo

import typer

from cli.change.stream import format_age, format_shards, read_shards
from cli.commands import Answer, Limit
from cli.deployed_stack import DeployedStack
from cli.documents import Backlog, Collected, NextNight, OpenAlarm, StatusDocument
from cli.inspect.executions import RUNNING, list_nights, read_next_night, running_execution
from cli.inspect.failures import count_dead_letters, list_not_delivered
from cli.terminal import cells, print_table, working
from lake.documents import find_document
from lake.layout import sweep_key
from lake.ledger import Failure, Ledger, ManifestRow
from lake.ledger.manifest_row import OPEN_STATES
from lake.manifest import Lane
from lake.texts import format_clock, format_count, format_dollars, format_duration, format_size, printable
from lake.time import iso_utc
from router.sweep.missed import HOUR_FORMAT, LISTING, OLD_DAYS

LISTS = tuple((lane, state) for lane in Lane for state in (*OPEN_STATES, *Failure))
MAX_BACKLOGS = 20
"""Maximum number of backlog lines, the largest first: a page has no room for 10,000 datasets."""


def status_command(stack: DeployedStack, limit: Limit = 20_000) -> Answer:
    """Show what waits, what failed, whether the stream is alive, tonight's forecast, last night and open alarms."""
    now = datetime.now(UTC)
    with working("reading the ledger ..."):
        document = status_document(stack, limit, now)
    return Answer(document, lambda: print_status_document(document, now, stack.options))


def status_document(stack: DeployedStack, limit: int, now: datetime) -> StatusDocument:
    """Read the document, with at most ``limit`` manifests of each lane and state; all lists are read in parallel."""
    with ThreadPoolExecutor(len(LISTS) + 8) as pool:
        rows_of = stack.ledger.manifests.open
        listed = [pool.submit(lambda item: list(islice(rows_of(*item), limit + 1)), item) for item in LISTS]
        collected = pool.submit(_collected, stack.ledger)
        running, last = (
            pool.submit(running_execution, stack),
            pool.submit(lambda: next((night for night in list_nights(stack) if night.status != RUNNING), None)),
        )
        next_night, alarms = pool.submit(read_next_night, stack, now), pool.submit(read_alarms, stack)
        missed = [pool.submit(_missed_events_until, stack, listing) for listing in (LISTING, OLD_DAYS)]
        dead_letters = pool.submit(count_dead_letters, stack)
        not_delivered = pool.submit(list_not_delivered, stack, None)
        ignored = pool.submit(stack.ledger.ignored.groups)
        found = {item: rows.result() for item, rows in zip(LISTS, listed, strict=True)}
        shards = read_shards(stack, (row for state in OPEN_STATES for row in found[Lane.STREAM, state][:limit]))
    opened: defaultdict[tuple[Lane, str], list[ManifestRow]] = defaultdict(list)
    for lane, state in product(Lane, OPEN_STATES):
        for row in found[lane, state][:limit]:
            opened[lane, row.partition.dataset].append(row)
    failed, unreadable = (sum(len(found[lane, state][:limit]) for lane in Lane) for state in Failure)
    open_alarms, without_state = alarms.result()
    return StatusDocument(
        stack=stack.name,
        read_at=iso_utc(now),
        complete=all(len(rows) <= limit for rows in found.values()),
        backlog=tuple(_backlog(lane, dataset, rows) for (lane, dataset), rows in sorted(opened.items())),
        collected=collected.result(),
        failed_manifests=failed,
        manifests_with_unreadable_files=unreadable,
        dead_letters=dead_letters.result(),
        failed_record_files=sum(item.files for item in not_delivered.result()[0]),
        ignored_files=sum(group.files for group in ignored.result()[0]),
        missed_events_until=missed[0].result(),
        missed_events_of_old_days_until=missed[1].result(),
        shards=shards,
        next_night=next_night.result(),
        running=running.result(),
        last_night=last.result(),
        alarms=open_alarms,
        alarms_without_state=without_state,
    )


def _collected(ledger: Ledger) -> Collected:
    rows = [row for row in ledger.collections.open() if row.parts]
    hours = [row.id.hour for row in rows]
    blocked = sum(row.files for row in rows if row.id.is_apart)
    return Collected(sum(row.files for row in rows), sum(row.bytes for row in rows), min(hours, default=None), blocked)


def _backlog(lane: Lane, dataset: str, rows: Sequence[ManifestRow]) -> Backlog:
    return Backlog(
        lane=lane.value,
        dataset=dataset,
        manifests=len(rows),
        files=sum(row.files for row in rows),
        bytes=sum(row.bytes for row in rows),
        oldest=min(row.queued_at for row in rows),
        states={state.value: sum(row.state == state for row in rows) for state in OPEN_STATES},
        blocked=sum(row.blocked for row in rows),
    )


def _missed_events_until(stack: DeployedStack, listing: str) -> str | None:
    """The end of the last hour whose objects the sweep has compared with the ledger; None before its first listing."""
    found = find_document(stack.s3, stack.resources.control_bucket, sweep_key(listing)) or {}
    until = found.get("covered_until")
    return iso_utc(datetime.strptime(until, HOUR_FORMAT).replace(tzinfo=UTC) + timedelta(hours=1)) if until else None


def print_status_document(document: StatusDocument, now: datetime, options: str) -> None:
    """Print the document; instants are in the stage's time zone, and the commands that it names have these options."""
    zone = ZoneInfo(document.next_night.time_zone)
    clock = partial(format_clock, zone=zone, now=now)
    typer.echo(f"{document.stack}, times in {zone.key}")
    collected = document.collected
    if document.backlog:
        _print_backlog(document.backlog, now)
    if collected.files:
        files = f"{format_count(collected.files, 'file')}, {format_size(collected.bytes)}"
        typer.echo(f"collected  {files} since {collected.oldest_hour} UTC, divided when their hour is over")
        if collected.blocked:
            files = f"of these, {format_count(collected.blocked, 'file')}"
            typer.echo(f"           {files} in damaged parts: 'hybrid-router failures{options}' names them")
    elif not document.backlog:
        typer.echo("backlog    nothing waits")
    if not document.complete:
        typer.echo("           only the first manifests of a long list are counted: pass a larger --limit")
    for name, text in (
        ("failures", _failures(document, options)),
        ("listing", _listing(document, now, clock)),
        *(("stream", text) for text in format_shards(document.shards, now, clock)),
        ("next night", _tonight(document.next_night, clock, options)),
        ("last night", _last_night(document, clock)),
        ("alarms", _alarms(document)),
        *(("", f"{alarm.name} since {clock(alarm.since)}: {alarm.description}") for alarm in document.alarms),
    ):
        typer.echo(f"{name:<11}{printable(text)}")


def _alarms(document: StatusDocument) -> str:
    number, unknown = len(document.alarms), document.alarms_without_state
    text = format_count(number, "open alarm") if number else "none open"
    return f"{text}, except {format_count(unknown, 'alarm')} never evaluated" if unknown else text


def _print_backlog(rows: Sequence[Backlog], now: datetime) -> None:
    largest = sorted(rows, key=lambda row: -row.bytes)[:MAX_BACKLOGS]
    print_table(
        "Backlog",
        ("lane", "dataset"),
        ("files", "size", "manifests", "in progress", "blocked", "oldest"),
        (
            (
                row.lane,
                printable(row.dataset),
                *cells(row, "files", "bytes", "manifests"),
                f"{row.states['RUNNING'] + row.states['PUBLISHING']:,}",
                f"{row.blocked:,}",
                format_age(row.oldest, now),
            )
            for row in rows
            if row in largest
        ),
    )
    if more := len(rows) - len(largest):
        typer.echo(f"           the {more:,} smaller backlogs are left out: --json has them")


def _failures(document: StatusDocument, options: str) -> str:
    counts = (
        (document.failed_manifests, "manifest", " FAILED"),
        (document.manifests_with_unreadable_files, "manifest", " with unreadable files"),
        (sum(row.blocked for row in document.backlog), "manifest", " blocked"),
        (document.dead_letters, "dead letter", ""),
        (document.failed_record_files, "file", " of records that Firehose could not deliver"),
        (document.ignored_files, "file", " ignored"),
    )
    parts = [f"{format_count(number, noun)}{what}" for number, noun, what in counts if number]
    return f"{', '.join(parts)}: 'hybrid-router failures{options}' shows why" if parts else "none"


def _listing(document: StatusDocument, now: datetime, clock: Callable[[str], str]) -> str:
    until, old = document.missed_events_until, document.missed_events_of_old_days_until
    if until is None:
        return "no sweep has searched for missed events yet"
    text = f"missed events are found up to {clock(until)}, {format_age(until, now)} ago"
    return f"{text}; in folders of older days up to {clock(old)}, {format_age(old, now)} ago" if old else text


def _tonight(night: NextNight, clock: Callable[[str], str], options: str) -> str:
    forecast = night.forecast
    if not night.enabled:
        return "the schedule is disabled: no night starts automatically"
    plan = f"'hybrid-router plan{options}'"
    if night.start is None:
        return f"{night.schedule}, which has no next start and so no forecast: {plan} shows a night that begins now"
    if forecast is None:
        return f"begins {clock(night.start)}; no forecast yet, one is made every hour: {plan} makes one now"
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


def _last_night(document: StatusDocument, clock: Callable[[str], str]) -> str:
    last, running = document.last_night, document.running
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


def own_alarms(stack: DeployedStack) -> Iterator[dict[str, Any]]:
    """Yield the alarms that publish to the stack's topic: another stack's name can begin with this stack's name."""
    describe: Any = stack.cloudwatch.get_paginator("describe_alarms").paginate
    for page in describe(AlarmTypes=["MetricAlarm"], AlarmNamePrefix=f"{stack.name}-"):
        for alarm in page["MetricAlarms"]:
            if stack.outputs.alarm_topic in alarm.get("AlarmActions", ()):
                yield alarm


def read_alarms(stack: DeployedStack) -> tuple[tuple[OpenAlarm, ...], int]:
    """Return the open alarms, newest first, and the number of alarms without a state.

    CloudWatch has not evaluated the latter yet; the local cloud never evaluates some.
    """
    alarms = sorted(own_alarms(stack), key=lambda alarm: alarm["StateUpdatedTimestamp"], reverse=True)
    opened = tuple(
        OpenAlarm(
            alarm["AlarmName"],
            iso_utc(alarm["StateUpdatedTimestamp"]),
            stack.runnable(alarm.get("AlarmDescription", "")),
        )
        for alarm in alarms
        if alarm["StateValue"] == "ALARM"
    )
    return opened, sum(alarm["StateValue"] == "INSUFFICIENT_DATA" for alarm in alarms)
