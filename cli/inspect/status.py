"""``hybrid-router status``: what waits, what is wrong, whether the stream is alive, what tonight will look like."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime

import typer

from cli.deployed_stack import DeployedStack
from cli.documents import Backlog, LastNight, MissedEvents, Nights, StatusDocument, StreamLane, StreamShard
from cli.exit_codes import ExitCode
from cli.inspect.backlog import read_open
from cli.inspect.dead_letters import count_dead_letters
from cli.inspect.executions import RUNNING, list_executions
from cli.inspect.failed_records import list_failed_records
from cli.inspect.night_schedule import NightSchedule, planned_night, read_forecast, read_schedule
from cli.inspect.open_alarms import read_alarms
from cli.inspect.status_output import print_status_document
from cli.inspect.stream_shards import ShardState, read_shards
from cli.progress import shown_when_slow
from lake.documents import find_document
from lake.json_document import format_json
from lake.layout import sweep_key
from lake.time import iso_utc
from router.sweep.missed import HOUR_FORMAT, LISTING

MAX_EXECUTIONS = 20
"""Executions that are read to find the last night: dry runs and running ones are passed over."""


def print_status(stack: DeployedStack, limit: int, *, as_json: bool) -> int:
    """Print the state of the stack, as a page or as one JSON document; the exit code.

    ``limit`` is the maximum number of manifests that are read of each lane and state.
    """
    now = datetime.now(UTC)
    with shown_when_slow("reading the ledger ..."):
        schedule = read_schedule(stack)
        document = status_document(stack, schedule, limit, now)
    if as_json:
        typer.echo(format_json(document))
    else:
        print_status_document(document, schedule.zone, now, stack.options, local=stack.local)
    return ExitCode.FINE


def status_document(stack: DeployedStack, schedule: NightSchedule, limit: int, now: datetime) -> StatusDocument:
    """The document of ``status``. The services are asked in parallel; raises botocore's errors."""
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
    search = find_document(stack.s3, stack.resources.control_bucket, sweep_key(LISTING))
    if not search or not search.get("covered_until"):
        return None
    until = datetime.strptime(search["covered_until"], HOUR_FORMAT).replace(tzinfo=UTC)
    return MissedEvents(iso_utc(until), round((now - until).total_seconds()), search["dataset"])


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
