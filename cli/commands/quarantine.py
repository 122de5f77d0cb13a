"""Commands for what could not become a row: list it, show it, export it for a repair, and give it back."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from cli.commands.options import DryRun, FirstHour, Json, LastHour, on_stack

if TYPE_CHECKING:
    from cli.deployed_stack import DeployedStack

app = typer.Typer(no_args_is_help=True)

Dataset = Annotated[str | None, typer.Option(help="Only this dataset.")]
Reason = Annotated[str | None, typer.Option(help="Only reasons that begin with this.")]
File = Annotated[str | None, typer.Option(help="Only this input file: s3://bucket/key.")]
Limit = Annotated[int, typer.Option(min=1, help="Maximum number of records.")]


@app.command()
@on_stack
def ls(
    stack: DeployedStack,
    dataset: Dataset = None,
    first: FirstHour = None,
    last: LastHour = None,
    reason: Reason = None,
    file: File = None,
    by: Annotated[Literal["dataset", "hour", "reason", "file"], typer.Option(help="Sum up by this.")] = "hour",
    limit: Limit = 100_000,
    as_json: Json = False,
) -> int:
    """Count the rejected lines and the unreadable files."""
    from cli.quarantine.listing import print_quarantine
    from cli.quarantine.records import parse_quarantine_selection

    selection = parse_quarantine_selection(stack, dataset, first, last, reason, file)
    return print_quarantine(stack, selection, by, limit, as_json=as_json)


@app.command()
@on_stack
def show(
    stack: DeployedStack,
    dataset: Dataset = None,
    first: FirstHour = None,
    last: LastHour = None,
    reason: Reason = None,
    file: File = None,
    limit: Limit = 20,
    context: Annotated[
        int | None,
        typer.Option(min=0, max=10, help="Number each line, with this many lines around it; reads the files."),
    ] = None,
    as_json: Json = False,
) -> int:
    """Show rejected lines and unreadable files, each with its file, offset and reason: 1 if there is none."""
    from cli.quarantine.listing import print_records
    from cli.quarantine.records import parse_quarantine_selection

    selection = parse_quarantine_selection(stack, dataset, first, last, reason, file)
    return print_records(stack, selection, limit, context, as_json=as_json)


@app.command()
@on_stack
def export(
    stack: DeployedStack,
    target: Annotated[Path, typer.Argument(help="New file for the lines; its origins go to a file next to it.")],
    dataset: Dataset = None,
    first: FirstHour = None,
    last: LastHour = None,
    reason: Reason = None,
    file: File = None,
    limit: Limit = 100_000,
    as_json: Json = False,
) -> int:
    """Write rejected lines to a file, as they are in their input files, so that a person can repair them."""
    from cli.quarantine.records import parse_quarantine_selection
    from cli.quarantine.repair import export_lines

    selection = parse_quarantine_selection(stack, dataset, first, last, reason, file)
    return export_lines(stack, selection, target, limit, as_json=as_json)


@app.command()
@on_stack
def retry(
    stack: DeployedStack,
    exported: Annotated[Path, typer.Argument(help="A repaired file of an export.")],
    now: Annotated[bool, typer.Option("--now", help="Start overnight for their hours at once.")] = False,
    dry_run: DryRun = False,
    as_json: Json = False,
) -> int:
    """Give repaired lines back: they become rows of their own hour, once, however often this is run."""
    from cli.quarantine.repair import retry_lines

    return retry_lines(stack, exported, dry_run=dry_run, now=now, as_json=as_json)
