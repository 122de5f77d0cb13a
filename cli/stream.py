"""``hybrid-router stream start``, ``stop`` and ``status``: the streaming job, and whether it runs."""

from __future__ import annotations

import json
import time
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import typer

from cli.exit_codes import ExitCode
from lake.job_runs import live_glue_runs
from lake.ledger import State
from lake.manifest import Lane
from router.streaming import MAX_LISTED_RUNS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from cli.deployed_stack import DeployedStack

POLL_SECONDS = 5.0


def print_stream(stack: DeployedStack, *, as_json: bool) -> int:
    """Print the streaming job's run, its window and its backlog; only reads. The exit code: 1 if no run is alive."""
    status = _read(stack)
    typer.echo(json.dumps(status, indent=1) if as_json else _format(status))
    return ExitCode.FINE if status["running"] else ExitCode.NOT_SO


def start_stream(stack: DeployedStack, *, dry_run: bool, as_json: bool) -> int:
    """Open a window until ``schedule.stream_end`` and start a run; the exit code: 1 if quotas have no room for it.

    Raises
    ------
    FunctionFailedError
        The message is the function's.
    """
    if dry_run:
        status = _read(stack)
        action = "a run is alive, so none is started" if status["running"] else "a run is started"
        return _say(status, f"dry run, nothing was done: {action}, and a window opens", as_json=as_json)
    answer = stack.control_stream("start")
    text = "the streaming job runs" if answer["running"] else "no room for a run now: the sweep starts it later"
    _say(_read(stack), text, as_json=as_json)
    return ExitCode.FINE if answer["running"] else ExitCode.NOT_SO


def stop_stream(
    stack: DeployedStack, *, dry_run: bool, as_json: bool, wait: Callable[[float], object] = time.sleep
) -> int:
    """Have the run end between two micro-batches, and wait until it has; the exit code: 1 if another one begins.

    Raises
    ------
    FunctionFailedError
        The message is the function's.
    """
    if dry_run:
        status = _read(stack)
        action = "its run is asked to end" if status["running"] else "no run is alive"
        return _say(status, f"dry run, nothing was done: {action}", as_json=as_json)
    answer = stack.control_stream("stop")
    while answer["running"] and not answer["stopped"]:
        wait(POLL_SECONDS)
        answer = stack.control_stream("stop")
    text = "a new run converts what is still queued, and ends when it is idle" if answer["running"] else "stopped"
    if not answer["windowOver"]:
        text += "; its window is open, so the state machine stream_window starts a run again: stop its execution first"
    _say(_read(stack), text, as_json=as_json)
    return ExitCode.NOT_SO if answer["running"] else ExitCode.FINE


def _read(stack: DeployedStack) -> dict[str, Any]:
    alive = live_glue_runs(stack.glue, stack.resources.stream_job, MAX_LISTED_RUNS)
    rows = [row for state in (State.QUEUED, State.RUNNING) for row in stack.ledger.manifests.open(Lane.STREAM, state)]
    backlog = {"manifests": len(rows), "files": sum(row.files for row in rows), "bytes": sum(row.bytes for row in rows)}
    return {"running": bool(alive), "runs": alive, **asdict(stack.ledger.stream.get()), "backlog": backlog}


def _say(status: Mapping[str, Any], text: str, *, as_json: bool) -> int:
    typer.echo(json.dumps({**status, "message": text}, indent=1) if as_json else text)
    return ExitCode.FINE


def _format(status: Mapping[str, Any]) -> str:
    backlog = status["backlog"]
    run = f"run {', '.join(status['runs'])}" if status["running"] else "no run is alive"
    heartbeat = f", last heartbeat {status['heartbeat_at']}" if status["heartbeat_at"] else ""
    flags = [name for name in ("stop_requested", "spilling") if status[name]]
    window = f"window until {status['window_until']}" if status["window_until"] else "no window was opened"
    return "\n".join(
        [
            "".join([run, heartbeat, *(f", {name.replace('_', ' ')}" for name in flags)]),
            window,
            f"backlog: {backlog['manifests']:,} manifests, {backlog['files']:,} files, {backlog['bytes']:,} bytes",
        ]
    )
