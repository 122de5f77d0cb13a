"""``hybrid-router local up``: the whole cloud in the foreground."""

import json
import os
import shutil
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from cli.commands import SettingsFile, command
from cli.connect import aws_on_local_cloud, local_config
from cli.doctor.checks import require_local_packages
from cli.local_stage.local_clouds import KEPT, LocalStage, local_state
from cli.terminal import ended_by_signal
from lake.settings import Settings, load_settings


@command("local up")
def local_up(
    settings_file: SettingsFile = Path("settings/dev.toml"),
    *,
    keep: Annotated[bool, typer.Option("--keep", help="Keep its buckets and logs when it ends.")] = False,
) -> None:
    """Run the whole cloud on this machine until Ctrl-C, which deletes it, and deploy a settings file's stack to it."""
    require_local_packages()
    settings = load_settings(settings_file)
    stage = LocalStage(local_state(), settings.stage)
    folder = stage.cloud_folder(os.getpid())
    with ended_by_signal(), stage.claimed():
        try:
            _run(settings, stage, folder, keep=keep)
        finally:
            stage.forget()
            if keep and folder.exists():
                kept = folder.rename(f"{folder}{KEPT}")
                typer.echo(f"buckets and logs are kept in {kept}: delete it when you do not need it")
            elif folder.exists():
                shutil.rmtree(folder)


def _run(settings: Settings, stage: LocalStage, folder: Path, *, keep: bool) -> None:
    from infra.synth import synth
    from local.cloud import LocalCloud

    with LocalCloud.start(folder, log=typer.echo) as cloud:
        typer.echo("running cdk synth and deploying its template unchanged")
        outputs = cloud.deploy(synth(settings, folder / "cdk.out"))
        key = asdict(cloud.access_key)
        state = {"endpoint": cloud.endpoint, "access_key": key, "pid": os.getpid(), "logs": str(cloud.logs_dir)}
        for file, text in (
            (stage.aws_config, local_config(cloud.endpoint, cloud.access_key)),
            (stage.state_file, json.dumps(state)),
        ):
            file.touch(mode=0o600)
            file.write_text(text, encoding="utf-8")
        typer.echo(f"\nendpoint  {cloud.endpoint}   (its access key is in {stage.state_file})")
        for name, value in sorted(outputs.items()):
            typer.echo(f"{name:<22} {value}")
        typer.echo(f"logs      {cloud.logs_dir}")
        typer.echo(f"AWS CLI   {aws_on_local_cloud(stage.aws_config)}")
        place = f"--local --stage {settings.stage}"
        typer.echo(f"\nPut files into the input bucket; run 'hybrid-router status {place}'.")
        kept = f"; buckets and logs are kept in {folder}{KEPT}" if keep else f" and deletes {folder}: buckets and logs"
        typer.echo(f"Ctrl-C ends everything{kept}.")
        cloud.wait()
