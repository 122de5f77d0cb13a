"""Commands for what could not become a row: list it, show it, export it for a repair, and give it back."""

from __future__ import annotations

from pathlib import Path  # noqa: TC003
from typing import TYPE_CHECKING, Annotated

import typer

from cli.commands.options import DryRun, FirstHour, Json, LastHour, on_stack
from cli.quarantine.group_by import GroupBy

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
    by: Annotated[GroupBy, typer.Option(help="Sum up by this.")] = GroupBy.HOUR,
    limit: Limit = 100_000,
    as_json: Json = False,
) -> int:
    """Count the rejected lines and the unreadable files."""
    from cli.quarantine.listing import print_quarantine
    from cli.quarantine.records import parse_quarantine_selection

    options = {"dataset": dataset, "from": first, "to": last, "reason": reason, "file": file}
    return print_quarantine(stack, parse_quarantine_selection(stack, options), by, limit, as_json=as_json)


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
    as_json: Json = False,
) -> int:
    """Show rejected lines and unreadable files, each with its file, offset and reason: 1 if there is none."""
    from cli.quarantine.listing import print_records
    from cli.quarantine.records import parse_quarantine_selection

    options = {"dataset": dataset, "from": first, "to": last, "reason": reason, "file": file}
    return print_records(stack, parse_quarantine_selection(stack, options), limit, as_json=as_json)


@app.command()
@on_stack
def export(
    stack: DeployedStack,
    target: Annotated[Path, typer.Argument(help="New file for the lines; its origins go to a file beside it.")],
    dataset: Dataset = None,
    first: FirstHour = None,
    last: LastHour = None,
    reason: Reason = None,
    file: File = None,
    limit: Limit = 100_000,
    as_json: Json = False,
) -> int:
    """Write rejected lines to a file, as they stood in their input files, so that a person can repair them."""
    from cli.quarantine.export import export_lines
    from cli.quarantine.records import parse_quarantine_selection

    options = {"dataset": dataset, "from": first, "to": last, "reason": reason, "file": file}
    return export_lines(stack, parse_quarantine_selection(stack, options), target, limit, as_json=as_json)


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
    from cli.quarantine.retry import retry_lines

    return retry_lines(stack, exported, dry_run=dry_run, now=now, as_json=as_json)
