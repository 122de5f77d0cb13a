"""``hybrid-router local up``: the whole cloud in the foreground."""

from __future__ import annotations

import json
import os
import shutil
from dataclasses import asdict
from typing import TYPE_CHECKING

import typer

from cli.connect import LOCAL_STATE
from infra.synth import synth
from lake.settings import load_settings
from local.cloud import LocalCloud

if TYPE_CHECKING:
    from pathlib import Path


def local_up(settings_file: Path) -> None:
    """Start the local cloud, deploy the stack, print how to reach it, and stay until Ctrl-C.

    Several may run at once, with different stages.

    Raises
    ------
    InvalidSettingsError
        The settings file holds a wrong value.
    LocalCloudError
        The local cloud did not start, or the deployment failed.
    """
    settings = load_settings(settings_file)
    state_dir = LOCAL_STATE / f"{settings.stage}-{os.getpid()}"
    state_file = LOCAL_STATE / f"{settings.stage}.json"
    try:
        with LocalCloud.start(state_dir, log=typer.echo) as cloud:
            typer.echo("running cdk synth and deploying its template unchanged")
            outputs = cloud.deploy(synth(settings, state_dir / "cdk.out"))
            key = asdict(cloud.access_key)
            state = {"endpoint": cloud.endpoint, "access_key": key, "outputs": outputs, "pid": os.getpid()}
            state["logs"] = str(cloud.logs_dir)
            state_file.touch(mode=0o600)
            state_file.write_text(json.dumps(state), encoding="utf-8")
            typer.echo(f"\nendpoint  {cloud.endpoint}   (its access key is in {state_file})")
            for name, value in sorted(outputs.items()):
                typer.echo(f"{name:<22} {value}")
            typer.echo(f"logs      {cloud.logs_dir}")
            typer.echo("\nPut files into the input bucket; run hybrid-router status --local; Ctrl-C ends everything.")
            cloud.wait()
    finally:
        if state_file.is_file() and json.loads(state_file.read_text(encoding="utf-8"))["pid"] == os.getpid():
            state_file.unlink()
        if state_dir.exists():
            shutil.rmtree(state_dir)
