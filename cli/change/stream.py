"""``hybrid-router stream start``, ``stop`` and ``status``: the streaming jobs, and whether they run."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

import typer

from cli.deployed_stack import DeployedStack
from cli.errors import ExitCode
from cli.inspect.backlog import read_shards
from lake.ledger import ManifestRow, State
from lake.manifest import Lane
from lake.texts import format_count

POLL_SECONDS = 5.0


def print_stream(stack: DeployedStack, *, as_json: bool) -> int:
    """Print the streaming jobs' runs, windows and backlogs; only reads. The exit code: 1 if a shard has no run."""
    status = _read(stack)
    typer.echo(json.dumps(status, indent=1) if as_json else _format(status))
    return ExitCode.FINE if status["running"] else ExitCode.NOT_SO


def start_stream(stack: DeployedStack, *, dry_run: bool, as_json: bool) -> int:
    """Open a window until ``schedule.stream_end`` and start each run; the exit code: 1 if quotas have no room."""
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
    """Have the runs end between two micro-batches, and wait until they have; the exit code: 1 if another one begins."""
    if dry_run:
        status = _read(stack)
        action = "its run is asked to end" if status["running"] else "no run is alive"
        return _say(status, f"dry run, nothing was done: {action}", as_json=as_json)
    answer = stack.control_stream("stop")
    while not answer["stopped"]:
        wait(POLL_SECONDS)
        # A shard that has stopped may have a new run, for what is still queued.
        answer = stack.control_stream("stop", answer["stopping"])
    text = "a new run converts what is still queued, and ends when it is idle" if answer["running"] else "stopped"
    if not answer["windowOver"]:
        text += "; its window is open, so the state machine stream_window starts a run again: stop its execution first"
    _say(_read(stack), text, as_json=as_json)
    return ExitCode.NOT_SO if answer["running"] else ExitCode.FINE


def _read(stack: DeployedStack) -> dict[str, Any]:
    """All shards together; what the row has is that of the first one."""
    waiting: dict[str, list[ManifestRow]] = {}
    for state in (State.QUEUED, State.RUNNING):
        for row in stack.ledger.manifests.open(Lane.STREAM, state):
            waiting.setdefault(stack.outputs.shards.of(row.id), []).append(row)
    shards = [
        {
            "shard": state.shard,
            "running": bool(state.runs),
            "runs": list(state.runs),
            **asdict(state.row),
            "backlog": _backlog(waiting.get(state.shard, [])),
        }
        for state in read_shards(stack)
    ]
    first = {name: value for name, value in shards[0].items() if name != "shard"}
    return {
        **first,
        "running": all(shard["running"] for shard in shards),
        "runs": [run for shard in shards for run in shard["runs"]],
        "backlog": _backlog([row for rows in waiting.values() for row in rows]),
        "shards": shards,
    }


def _backlog(rows: Sequence[ManifestRow]) -> dict[str, int]:
    return {"manifests": len(rows), "files": sum(row.files for row in rows), "bytes": sum(row.bytes for row in rows)}


def _say(status: Mapping[str, Any], text: str, *, as_json: bool) -> int:
    typer.echo(json.dumps({**status, "message": text}, indent=1) if as_json else text)
    return ExitCode.FINE


def _format(status: Mapping[str, Any]) -> str:
    shards = status["shards"]
    if len(shards) == 1:
        return "\n".join(_lines(shards[0]))
    lines = []
    for shard in shards:
        lines += [f"shard {shard['shard']}", *(f"  {line}" for line in _lines(shard))]
    return "\n".join(lines)


def _lines(shard: Mapping[str, Any]) -> list[str]:
    backlog = shard["backlog"]
    waiting = ", ".join(format_count(backlog[f"{noun}s"], noun) for noun in ("manifest", "file", "byte"))
    run = f"run {', '.join(shard['runs'])}" if shard["running"] else "no run is alive"
    if shard["starts"] and not shard["running"]:
        run += f", {format_count(shard['starts'], 'start')} in succession failed"
        run += f": {shard['start_failure']}" if shard["start_failure"] else ""
    heartbeat = f", last heartbeat {shard['heartbeat_at']}" if shard["heartbeat_at"] else ""
    flags = [name for name in ("stop_requested", "spilling") if shard[name]]
    window = f"window until {shard['window_until']}" if shard["window_until"] else "no window was opened"
    return [
        "".join([run, heartbeat, *(f", {name.replace('_', ' ')}" for name in flags)]),
        window,
        f"backlog: {waiting}",
    ]
