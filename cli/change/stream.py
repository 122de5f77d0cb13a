"""``hybrid-router stream start``, ``stop`` and ``status``: the streaming jobs, and whether they run."""

import json
import time
from collections.abc import Callable
from datetime import UTC, datetime

import typer

from cli.deployed_stack import DeployedStack
from cli.documents import StreamDocument
from cli.errors import ExitCode
from cli.inspect.backlog import format_shards, live_runs, read_shards
from cli.inspect.executions import read_zone
from lake.documents import format_json
from lake.texts import format_clock, printable, read_instant

POLL_SECONDS = 5.0


def print_stream(stack: DeployedStack, *, as_json: bool) -> int:
    """Print the streaming jobs' runs, windows and backlogs; only reads. The exit code: 1 if a shard has no run."""
    shards, now = read_shards(stack), datetime.now(UTC)
    if as_json:
        typer.echo(format_json(StreamDocument(shards)))
    else:
        zone = read_zone(stack)
        typer.echo(f"{stack.name}, times in {zone.key}")
        for text in format_shards(shards, now, lambda instant: format_clock(read_instant(instant), zone, now)):
            typer.echo(printable(text))
    return ExitCode.FINE if all(shard.runs for shard in shards) else ExitCode.NOT_SO


def start_stream(stack: DeployedStack, *, dry_run: bool, as_json: bool) -> int:
    """Open a window until ``schedule.stream_end`` and start each run; the exit code: 1 if that is not possible now."""
    if dry_run:
        action = "a run is alive, so none is started" if _is_running(stack) else "a run is started"
        _say(f"dry run, nothing was done: {action}, and a window opens", as_json=as_json)
        return ExitCode.FINE
    running = stack.control_stream("start")["running"]
    text = "the streaming job runs" if running else "no run can be started now: the sweep starts it later"
    _say(text, as_json=as_json)
    return ExitCode.FINE if running else ExitCode.NOT_SO


def stop_stream(
    stack: DeployedStack, *, dry_run: bool, as_json: bool, wait: Callable[[float], object] = time.sleep
) -> int:
    """Have the runs end between two micro-batches, and wait until they have; the exit code: 1 if another one begins."""
    if dry_run:
        action = "its run is asked to end" if _is_running(stack) else "no run is alive"
        _say(f"dry run, nothing was done: {action}", as_json=as_json)
        return ExitCode.FINE
    answer = stack.control_stream("stop")
    while not answer["stopped"]:
        wait(POLL_SECONDS)
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
    typer.echo(json.dumps({"message": text}) if as_json else text)
