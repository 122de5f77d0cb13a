"""Commands that change what a stack does: files, nights, backfills, the stream, the sweep; each has a dry run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from cli.commands.options import DryRun, FirstHour, Json, LastHour, Limit, on_stack

if TYPE_CHECKING:
    from cli.deployed_stack import DeployedStack

app = typer.Typer()
stream_app = typer.Typer(no_args_is_help=True)
app.add_typer(stream_app, name="stream", help="The streaming job.")
dead_letters_app = typer.Typer(no_args_is_help=True)
app.add_typer(
    dead_letters_app, name="dead-letters", help="Events and starts of schedules that failed in every attempt."
)

NoWait = Annotated[bool, typer.Option("--no-wait", help="Start it, and do not wait for its end.")]


@app.command()
@on_stack
def sweep(stack: DeployedStack, dry_run: DryRun = False, as_json: Json = False) -> int:
    """Repair now what crashed processes left; a schedule does so every 15 minutes."""
    from cli.change.requests import print_sweep

    return print_sweep(stack, dry_run=dry_run, as_json=as_json)


@app.command()
@on_stack
def overnight(
    stack: DeployedStack,
    dataset: Annotated[str | None, typer.Option(help="Only what is queued of this dataset.")] = None,
    first: FirstHour = None,
    last: LastHour = None,
    no_wait: NoWait = False,
    dry_run: DryRun = False,
    as_json: Json = False,
) -> int:
    """Convert now what waits for the night, and wait for the verdict: 0 all is done, 1 not."""
    from cli.change.executions import run_overnight

    fields = {"dataset": dataset, "from": first, "to": last}
    return run_overnight(stack, fields, dry_run=dry_run, wait=not no_wait, as_json=as_json)


@app.command()
@on_stack
def backfill(
    stack: DeployedStack,
    dataset: Annotated[str, typer.Option(help="Dataset to list.")],
    first: Annotated[str, typer.Option("--from", help="UTC day or hour, such as 2026-11-21T08.")],
    last: Annotated[str, typer.Option("--to", help="UTC day or hour, inclusive.")],
    force: Annotated[bool, typer.Option("--force", help="Convert again what is DONE or FAILED there.")] = False,
    no_wait: NoWait = False,
    dry_run: DryRun = False,
    as_json: Json = False,
) -> int:
    """Find older files that have no owner and convert them, and wait for the verdict: 0 all is done, 1 not."""
    from cli.change.executions import run_backfill

    fields = {"dataset": dataset, "from": first, "to": last, "force": force}
    return run_backfill(stack, fields, dry_run=dry_run, wait=not no_wait, as_json=as_json)


@stream_app.command()
@on_stack
def status(stack: DeployedStack, as_json: Json = False) -> int:
    """Show the runs of the streaming jobs, their windows and backlogs: 0 each job has a live run, 1 not."""
    from cli.change.stream import print_stream

    return print_stream(stack, as_json=as_json)


@stream_app.command()
@on_stack
def start(stack: DeployedStack, dry_run: DryRun = False, as_json: Json = False) -> int:
    """Start the streaming job, and keep it running until schedule.stream_end."""
    from cli.change.stream import start_stream

    return start_stream(stack, dry_run=dry_run, as_json=as_json)


@stream_app.command()
@on_stack
def stop(stack: DeployedStack, dry_run: DryRun = False, as_json: Json = False) -> int:
    """Have the streaming job end after its micro-batch, and wait until it has."""
    from cli.change.stream import stop_stream

    return stop_stream(stack, dry_run=dry_run, as_json=as_json)


@dead_letters_app.command()
@on_stack
def ls(stack: DeployedStack, limit: Limit = 100, as_json: Json = False) -> int:
    """List them, with what redrive does with each: 0 none, 1 some."""
    from cli.change.dead_letters import print_dead_letters

    return print_dead_letters(stack, limit, as_json=as_json)


@dead_letters_app.command()
@on_stack
def redrive(stack: DeployedStack, dry_run: DryRun = False, as_json: Json = False) -> int:
    """Send events of files without an owner to route again, and remove all messages from the queue."""
    from cli.change.dead_letters import redrive_dead_letters

    return redrive_dead_letters(stack, dry_run=dry_run, as_json=as_json)


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
