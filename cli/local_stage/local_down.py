"""``hybrid-router local down`` and ``local ls``: end a local cloud of this machine, and list them."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Callable
from typing import Any

import typer

from cli.exit_codes import ExitCode
from cli.local_stage.local_clouds import KEPT, LocalCloudRunsError, LocalStage, local_state, stages
from lake.errors import InvalidInputError
from lake.settings.model import STAGE_NAME

END_SECONDS = 60
"""Time that the end of a cloud may take: it ends processes and deletes its files."""
POLL_SECONDS = 0.2


def local_down(stage_name: str, wait: Callable[[float], None] = time.sleep) -> int:
    """End the cloud of a stage and wait until its files are deleted; returns the exit code."""
    if not STAGE_NAME.fullmatch(stage_name):
        raise InvalidInputError(
            f"{stage_name!r} is not a valid name of a stage: 'hybrid-router local ls' shows those that run"
        )
    stage = LocalStage(local_state(), stage_name)
    pid = stage.owner()
    if pid is None:
        return _remove_leftovers(stage)
    if pid:
        os.kill(pid, signal.SIGTERM)
    for _ in range(int(END_SECONDS / POLL_SECONDS)):
        if stage.owner() is None:
            typer.echo(f"the local cloud of stage {stage_name} has ended")
            return ExitCode.FINE
        wait(POLL_SECONDS)
    raise LocalCloudRunsError(
        f"process {pid} of stage {stage_name} has not ended after {END_SECONDS} s: run 'kill -9 {pid}'"
    )


def print_local_clouds(*, as_json: bool) -> int:
    """Print each local cloud that runs, and what others have left; returns the exit code."""
    clouds = [_describe(stage) for stage in stages(local_state())]
    kept = sorted(str(path) for path in local_state().glob(f"*{KEPT}"))
    if as_json:
        typer.echo(json.dumps({"clouds": clouds, "kept": kept}, indent=2))
        return ExitCode.FINE
    for cloud in clouds:
        place = f"process {cloud['pid']}, {cloud['endpoint'] or 'no endpoint yet'}" if cloud["running"] else ""
        left = f"not running, files are left: run 'hybrid-router local down --stage {cloud['stage']}'"
        typer.echo(f"{cloud['stage']:<20} {place or left}")
    for path in kept:
        typer.echo(f"{'kept':<20} {path}")
    if not clouds and not kept:
        typer.echo("no local cloud is running on this machine")
    return ExitCode.FINE


def _remove_leftovers(stage: LocalStage) -> int:
    had_some = stage.has_leftovers()
    with stage.claimed():
        pass
    files = "what it had left is deleted" if had_some else "nothing was to be done"
    typer.echo(f"no local cloud of stage {stage.stage} was running: {files}")
    return ExitCode.FINE


def _describe(stage: LocalStage) -> dict[str, Any]:
    pid = stage.owner()
    state: dict[str, Any] = {}
    if pid is not None and stage.state_file.is_file():
        state = json.loads(stage.state_file.read_text(encoding="utf-8"))
    return {"stage": stage.stage, "running": pid is not None, "pid": pid, "endpoint": state.get("endpoint")}
