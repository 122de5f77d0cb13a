"""``hybrid-router stream start``, ``stop`` and ``status``: the streaming jobs, and whether they run."""

import time
from collections.abc import Sequence
from datetime import UTC, datetime
from functools import partial

import typer

from cli.commands import DryRun, Json, command
from cli.deployed_stack import DeployedStack
from cli.documents import StreamDocument, StreamShard
from cli.errors import ExitCode
from cli.inspect.backlog import format_shards, live_runs, read_shards
from cli.inspect.executions import read_zone
from cli.terminal import print_answer
from lake.texts import format_clock, printable

POLL_SECONDS = 5.0


@command("stream status")
def print_stream(stack: DeployedStack, *, as_json: Json = False) -> int:
    """Show the runs of the streaming jobs, their windows and backlogs: 0 each job has a live run, 1 not."""
    shards = read_shards(stack)
    print_answer(StreamDocument(shards), lambda: _print(stack, shards), as_json=as_json)
    return ExitCode.FINE if all(shard.runs for shard in shards) else ExitCode.NOT_SO


def _print(stack: DeployedStack, shards: Sequence[StreamShard]) -> None:
    zone, now = read_zone(stack), datetime.now(UTC)
    typer.echo(f"{stack.name}, times in {zone.key}")
    for text in format_shards(shards, now, partial(format_clock, zone=zone, now=now)):
        typer.echo(printable(text))


@command("stream start")
def start_stream(stack: DeployedStack, *, dry_run: DryRun = False, as_json: Json = False) -> int:
    """Start the streaming job, and keep it running until schedule.stream_end."""
    if dry_run:
        action = "a run is alive, so none is started" if _is_running(stack) else "a run is started"
        _say(f"dry run, nothing was done: {action}, and a window opens", as_json=as_json)
        return ExitCode.FINE
    running = stack.control_stream("start")["running"]
    text = "the streaming job runs" if running else "no run can be started now: the sweep starts it later"
    _say(text, as_json=as_json)
    return ExitCode.FINE if running else ExitCode.NOT_SO


@command("stream stop")
def stop_stream(stack: DeployedStack, *, dry_run: DryRun = False, as_json: Json = False) -> int:
    """Have the streaming job end after its micro-batch, and wait until it has."""
    if dry_run:
        action = "its run is asked to end" if _is_running(stack) else "no run is alive"
        _say(f"dry run, nothing was done: {action}", as_json=as_json)
        return ExitCode.FINE
    answer = stack.control_stream("stop")
    while not answer["stopped"]:
        time.sleep(POLL_SECONDS)
        # A shard that has stopped may have a new run, for what is still queued.
        answer = stack.control_stream("stop", answer["stopping"])
    text = "a new run converts what is still queued, and ends when it is idle" if answer["running"] else "stopped"
    if not answer["windowOver"]:
        text += "; its window is open, so the state machine stream_window starts a run again: stop its execution first"
    _say(text, as_json=as_json)
    return ExitCode.NOT_SO if answer["running"] else ExitCode.FINE


def _is_running(stack: DeployedStack) -> bool:
    return all(live_runs(stack, shard) for shard in stack.outputs.shards.names)


def _say(text: str, *, as_json: bool) -> None:
    print_answer({"message": text}, lambda: typer.echo(text), as_json=as_json)
