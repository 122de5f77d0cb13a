"""Commands that change what a deployed stack does with files that it knows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from cli.commands.options import DryRun, FirstHour, Json, LastHour, on_stack

if TYPE_CHECKING:
    from cli.deployed_stack import DeployedStack

app = typer.Typer()

Files = Annotated[list[str] | None, typer.Argument(help="Files: s3://bucket/key.")]


@app.command()
@on_stack
def promote(
    stack: DeployedStack,
    uris: Files = None,
    dataset: Annotated[str | None, typer.Option(help="Instead of files: the queued files of this dataset.")] = None,
    first: FirstHour = None,
    last: LastHour = None,
    dry_run: DryRun = False,
    as_json: Json = False,
) -> int:
    """Make queued files urgent: they go from the batch lane to the stream lane."""
    from cli.change.requests import promote_files

    fields = {"files": uris or None, "dataset": dataset, "from": first, "to": last}
    return promote_files(stack, fields, dry_run=dry_run, as_json=as_json)


@app.command()
@on_stack
def reprocess(
    stack: DeployedStack,
    uris: Files = None,
    manifest: Annotated[list[str] | None, typer.Option(help="Instead of files: a manifest's id; repeatable.")] = None,
    dataset: Annotated[str | None, typer.Option(help="Instead of files: the manifests of this dataset.")] = None,
    first: FirstHour = None,
    last: LastHour = None,
    every: Annotated[bool, typer.Option("--all", help="Also what was converted without any unreadable file.")] = False,
    now: Annotated[bool, typer.Option("--now", help="Start overnight for them at once.")] = False,
    dry_run: DryRun = False,
    as_json: Json = False,
) -> int:
    """Convert again what FAILED or could not be read: it is queued for the next overnight run."""
    from cli.change.requests import reprocess_manifests

    fields = {"files": uris or None, "manifests": manifest or None, "dataset": dataset, "from": first, "to": last}
    return reprocess_manifests(stack, fields, every=every, now=now, dry_run=dry_run, as_json=as_json)
