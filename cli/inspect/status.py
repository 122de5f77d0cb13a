"""``hybrid-router status``: what waits, what is wrong, whether the stream is alive, what tonight will look like."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import typer

from cli.exit_codes import ExitCode
from cli.format_values import read_instant
from cli.inspect.backlog import read_open
from cli.inspect.dead_letters import count_dead_letters
from cli.inspect.executions import RUNNING, list_executions
from cli.inspect.failed_records import list_failed_records
from cli.inspect.night_schedule import planned_night, read_forecast, read_schedule
from cli.inspect.open_alarms import read_alarms
from cli.inspect.status_output import print_status_document
from cli.inspect.stream_shards import read_shards
from cli.progress import shown_when_slow
from lake.documents import find_document
from lake.json_document import to_json
from lake.layout import sweep_key
from lake.ledger import State
from lake.manifest import Lane
from lake.time import iso_utc
from router.sweep.missed import HOUR_FORMAT, LISTING

if TYPE_CHECKING:
    from cli.deployed_stack import DeployedStack
    from cli.inspect.backlog import Open
    from cli.inspect.night_schedule import NightSchedule
    from cli.inspect.stream_shards import ShardState

MAX_EXECUTIONS = 20
"""Executions that are looked at to find the last night: dry runs and running ones are passed over."""


def print_status(stack: DeployedStack, limit: int, *, as_json: bool) -> int:
    """Print the state of the stack, as a page or as one JSON document; the exit code.

    ``limit`` is the maximum number of manifests that are read of each lane and state.
    """
    now = datetime.now(UTC)
    with shown_when_slow("reading the ledger ..."):
        schedule = read_schedule(stack)
        document = status_document(stack, schedule, limit, now)
    if as_json:
        typer.echo(json.dumps(document, indent=2))
    else:
        print_status_document(document, schedule.zone, now, stack.options, local=stack.local)
    return ExitCode.FINE


def status_document(stack: DeployedStack, schedule: NightSchedule, limit: int, now: datetime) -> dict[str, Any]:
    """All that ``status`` shows; docs/commands.md describes it. The services are asked in parallel."""
    with ThreadPoolExecutor() as pool:
        opened = pool.submit(read_open, stack.ledger, limit)
        stream, forecast = pool.submit(_stream, stack), pool.submit(read_forecast, stack, now)
        nights, alarms = pool.submit(_nights, stack), pool.submit(read_alarms, stack)
        dead_letters = pool.submit(count_dead_letters, stack)
        missed = pool.submit(_missed_events, stack, now)
        failed_records = pool.submit(list_failed_records, stack, None)
    found = opened.result()
    running, last = nights.result()
    open_alarms, without_state = alarms.result()
    start = schedule.next_start(now)
    return {
        "stack": stack.name,
        "readAt": iso_utc(now),
        "complete": found.complete,
        "backlog": [backlog.to_json(now) for backlog in found.backlogs],
        "failedManifests": found.failed,
        "manifestsWithUnreadableFiles": found.unreadable,
        "deadLetters": dead_letters.result(),
        "failedRecordFiles": sum(group.files for group in failed_records.result()[0]),
        "missedEvents": missed.result(),
        "stream": {**stream.result(), **_stream_lag(found, now)},
        "night": {
            "schedule": schedule.expression,
            "timeZone": schedule.time_zone,
            "enabled": schedule.enabled,
            "nextStart": iso_utc(start) if start else None,
            "forecast": to_json(planned_night(forecast.result())),
            "running": running,
            "last": last,
        },
        "alarms": open_alarms,
        "alarmsWithoutState": without_state,
    }


def _missed_events(stack: DeployedStack, now: datetime) -> dict[str, Any] | None:
    """How far the sweep has compared the input bucket with the ledger; None: no sweep has listed it yet."""
    search = find_document(stack.s3, stack.resources.control_bucket, sweep_key(LISTING))
    if not search or not search.get("covered_until"):
        return None
    until = datetime.strptime(search["covered_until"], HOUR_FORMAT).replace(tzinfo=UTC)
    return {
        "coveredUntil": iso_utc(until),
        "behindSeconds": round((now - until).total_seconds()),
        "dataset": search["dataset"],
    }


def _stream(stack: DeployedStack) -> dict[str, Any]:
    """All shards together; run, heartbeat and window are those of the first one."""
    shards = [_shard(state) for state in read_shards(stack)]
    first = {name: value for name, value in shards[0].items() if name != "shard"}
    together = {
        "running": all(shard["running"] for shard in shards),
        "stopRequested": any(shard["stopRequested"] for shard in shards),
        "failedStarts": max(shard["failedStarts"] for shard in shards),
        "spilling": any(shard["spilling"] for shard in shards),
    }
    return {**first, **together, "shards": shards}


def _shard(state: ShardState) -> dict[str, Any]:
    return {
        "shard": state.shard,
        "running": bool(state.runs),
        "run": state.runs[0] if state.runs else None,
        "heartbeatAt": state.row.heartbeat_at,
        "windowUntil": state.row.window_until,
        "stopRequested": state.row.stop_requested,
        "failedStarts": 0 if state.runs else state.row.starts,
        "startFailure": None if state.runs else state.row.start_failure,
        "spilling": state.row.spilling,
    }


def _stream_lag(found: Open, now: datetime) -> dict[str, Any]:
    """How long the oldest manifest of the stream lane has been waiting to begin or to end."""
    oldest = [item.oldest for item in found.backlogs if item.lane == Lane.STREAM and item.oldest]
    queued = sum(item.states[State.QUEUED] for item in found.backlogs if item.lane == Lane.STREAM)
    lag = round((now - read_instant(min(oldest))).total_seconds()) if oldest else None
    return {"lagSeconds": lag, "queued": queued}


def _nights(stack: DeployedStack) -> tuple[str | None, dict[str, Any] | None]:
    """The name of the execution that runs now, and the last one that has ended."""
    running = None
    for number, execution in enumerate(list_executions(stack)):
        if execution.status == RUNNING:
            running = running or execution.name
        elif execution.is_night:
            return running, {
                "execution": execution.name,
                "outcome": execution.outcome,
                "startedAt": iso_utc(execution.started_at) if execution.started_at else None,
                "endedAt": iso_utc(execution.ended_at) if execution.ended_at else None,
                "rows": (execution.verdict or {}).get("rows"),
                "quarantinedLines": (execution.verdict or {}).get("rejects"),
                "unreadableFiles": (execution.verdict or {}).get("failed_files"),
            }
        if number >= MAX_EXECUTIONS:
            break
    return running, None
