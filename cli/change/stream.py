"""``hybrid-router stream start``, ``stop`` and ``status``: the streaming jobs, and whether they run."""

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from functools import partial
from itertools import chain
from typing import Any

import typer

from cli.commands import Answer, DryRun
from cli.deployed_stack import DeployedStack
from cli.documents import StreamDocument, StreamShard
from cli.errors import ExitCode
from cli.inspect.executions import read_zone
from lake.engines import ENGINES
from lake.ledger import ManifestRow
from lake.ledger.manifest_row import OPEN_STATES
from lake.manifest import Lane
from lake.texts import format_clock, format_count, format_duration, format_size, printable, read_instant

POLL_SECONDS = 5.0


def stream_status_command(stack: DeployedStack) -> Answer:
    """Show the runs of the streaming jobs, their windows and backlogs; exit code 1 unless each job has a live run."""
    shards = read_shards(stack)
    code = ExitCode.OK if all(shard.runs for shard in shards) else ExitCode.NEGATIVE
    return Answer(StreamDocument(shards), lambda: _print(stack, shards), code)


def _print(stack: DeployedStack, shards: Sequence[StreamShard]) -> None:
    zone, now = read_zone(stack), datetime.now(UTC)
    typer.echo(f"{stack.name}, times in {zone.key}")
    for text in format_shards(shards, now, partial(format_clock, zone=zone, now=now)):
        typer.echo(printable(text))


def stream_start_command(stack: DeployedStack, *, dry_run: DryRun = False) -> Answer:
    """Start the streaming job, and keep it running until schedule.stream_end."""
    if dry_run:
        action = "a run is alive, so none is started" if _is_running(stack) else "a run is started"
        return _message(f"dry run, nothing was done: {action}, and a window opens")
    # Watches the window, perhaps as a second execution. It comes first, to open the window even if no run starts.
    stack.start("stream_window", {})
    running = stack.control_stream("start")["running"]
    text = "the streaming job runs" if running else "no run can be started now: the sweep starts it later"
    return _message(text, ExitCode.OK if running else ExitCode.NEGATIVE)


def stream_stop_command(stack: DeployedStack, *, dry_run: DryRun = False) -> Answer:
    """End the stream window, have the streaming job end after its micro-batch, and wait until it has."""
    if dry_run:
        action = "its run is asked to end" if _is_running(stack) else "no run is alive"
        return _message(f"dry run, nothing was done: {action}, and its window ends")
    answer = wait_for_stop(stack, POLL_SECONDS)
    text = "a new run converts what is still queued, and ends when it is idle" if answer["running"] else "stopped"
    text += stack.runnable("; 'hybrid-router stream start' opens a window again")
    return _message(text, ExitCode.NEGATIVE if answer["running"] else ExitCode.OK)


def wait_for_stop(stack: DeployedStack, poll_seconds: float) -> dict[str, Any]:
    """Ask the streaming jobs to end until they have ended; return the last answer of ``stream_control``."""
    answer = stack.control_stream("stop")
    while not answer["stopped"]:
        time.sleep(poll_seconds)
        # A shard that has stopped may have a new run, for what is still queued.
        answer = stack.control_stream("stop", answer["stopping"])
    return answer


def _is_running(stack: DeployedStack) -> bool:
    return all(live_runs(stack, shard) for shard in stack.outputs.shards.names)


def _message(text: str, code: ExitCode = ExitCode.OK) -> Answer:
    return Answer({"message": text}, lambda: typer.echo(text), code)


def read_shards(stack: DeployedStack, rows: Iterable[ManifestRow] | None = None) -> tuple[StreamShard, ...]:
    """Return every shard of the stream lane in order. ``rows``: its open manifests; None: they are read."""
    shards = stack.outputs.shards
    opened: dict[str, list[ManifestRow]] = {shard: [] for shard in shards.names}
    if rows is None:
        rows = chain.from_iterable(stack.ledger.manifests.open(Lane.STREAM, state) for state in OPEN_STATES)
    for row in rows:
        opened[shards.of(row.id)].append(row)
    return tuple(_read_shard(stack, shard, rows) for shard, rows in opened.items())


def _read_shard(stack: DeployedStack, shard: str, rows: Sequence[ManifestRow]) -> StreamShard:
    health, runs = stack.ledger.stream.of(shard).get(), live_runs(stack, shard)
    # Until a started run reports, the heartbeat is an earlier run's. On some engines a run may not know its id.
    is_reported = health.started_run is None
    return StreamShard(
        shard=shard,
        runs=tuple(runs),
        heartbeat_at=health.heartbeat_at if is_reported else None,
        micro_batch_since=health.micro_batch_since if is_reported else None,
        window_until=health.window_until,
        stop_requested=health.stop_requested,
        failed_starts=0 if runs else health.starts,
        start_failure=None if runs or not health.start_failure else stack.runnable(health.start_failure),
        spilling=health.spilling,
        manifests=len(rows),
        files=sum(row.files for row in rows),
        bytes=sum(row.bytes for row in rows),
        oldest=min((row.created_at for row in rows), default=None),
    )


def live_runs(stack: DeployedStack, shard: str) -> list[str]:
    engine, job = ENGINES[stack.outputs.stream_engine], stack.resources.stream_job_of(shard)
    return engine.stream_runs(stack.stream_client, job, stack.outputs.stream_application).live()


def format_shards(shards: Sequence[StreamShard], now: datetime, clock: Callable[[str], str]) -> Iterator[str]:
    for shard in shards:
        name = f"shard {shard.shard}: " if len(shards) > 1 else ""
        yield name + ", ".join(_format_shard(shard, now, clock))


def _format_shard(shard: StreamShard, now: datetime, clock: Callable[[str], str]) -> Iterator[str]:
    if shard.runs:
        yield f"running ({', '.join(shard.runs)})"
        yield f"heartbeat {format_age(shard.heartbeat_at, now)} ago" if shard.heartbeat_at else "no heartbeat"
    else:
        yield "not running"
    if shard.failed_starts:
        why = f": {shard.start_failure}" if shard.start_failure else ""
        yield f"{format_count(shard.failed_starts, 'start')} in succession failed{why}"
    if shard.oldest:
        size = f"{format_count(shard.files, 'file')}, {format_size(shard.bytes)}"
        yield f"{format_count(shard.manifests, 'manifest')} ({size}), the oldest {format_age(shard.oldest, now)} old"
    if shard.window_until and read_instant(shard.window_until) > now:
        yield f"window until {clock(shard.window_until)}"
    if shard.stop_requested:
        yield "stop requested"
    if shard.spilling:
        yield "spilling to the batch lane"


def format_age(instant: str, now: datetime) -> str:
    """Format the age of an instant. The clock that wrote it may be ahead, or have written it after ``now`` was read."""
    return format_duration(max((now - read_instant(instant)).total_seconds(), 0))
