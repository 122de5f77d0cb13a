"""Commands for what could not become a row: list it, show it, export it for a repair, and give it back."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from cli.commands.options import DryRun, FirstHour, Json, LastHour, on_stack, parameters_of, with_parameters

if TYPE_CHECKING:
    from cli.deployed_stack import DeployedStack
    from cli.quarantine.records import QuarantineSelection

app = typer.Typer(no_args_is_help=True)

Dataset = Annotated[str | None, typer.Option(help="Only this dataset.")]
Reason = Annotated[str | None, typer.Option(help="Only reasons that begin with this.")]
File = Annotated[str | None, typer.Option(help="Only this input file: s3://bucket/key.")]
Limit = Annotated[int, typer.Option(min=1, help="Maximum number of records.")]


def _filters(
    dataset: Dataset = None,
    first: FirstHour = None,
    last: LastHour = None,
    reason: Reason = None,
    file: File = None,
) -> None:
    """The options that say which records."""


def on_selection(command: Callable[..., int]) -> Callable[..., int]:
    """The second parameter of the command becomes the options of ``_filters``."""

    @wraps(command)
    def selected(stack: DeployedStack, **options: Any) -> int:  # noqa: ANN401
        from cli.quarantine.records import parse_quarantine_selection

        names = {"dataset": "dataset", "from": "first", "to": "last", "reason": "reason", "file": "file"}
        filters = {key: options.pop(name) for key, name in names.items()}
        return command(stack, parse_quarantine_selection(stack, filters), **options)

    first, _, *own = parameters_of(command)
    return with_parameters(selected, [first, *parameters_of(_filters), *own])


@app.command()
@on_stack
@on_selection
def ls(
    stack: DeployedStack,
    selection: QuarantineSelection,
    by: Annotated[Literal["dataset", "hour", "reason", "file"], typer.Option(help="Sum up by this.")] = "hour",
    limit: Limit = 100_000,
    as_json: Json = False,
) -> int:
    """Count the rejected lines and the unreadable files."""
    from cli.quarantine.listing import print_quarantine

    return print_quarantine(stack, selection, by, limit, as_json=as_json)


@app.command()
@on_stack
@on_selection
def show(
    stack: DeployedStack,
    selection: QuarantineSelection,
    limit: Limit = 20,
    context: Annotated[
        int | None,
        typer.Option(min=0, max=10, help="Number each line, with so many lines before and after it; reads the files."),
    ] = None,
    as_json: Json = False,
) -> int:
    """Show rejected lines and unreadable files, each with its file, offset and reason: 1 if there is none."""
    from cli.quarantine.listing import print_records

    return print_records(stack, selection, limit, context, as_json=as_json)


@app.command()
@on_stack
@on_selection
def export(
    stack: DeployedStack,
    selection: QuarantineSelection,
    target: Annotated[Path, typer.Argument(help="New file for the lines; its origins go to a file beside it.")],
    limit: Limit = 100_000,
    as_json: Json = False,
) -> int:
    """Write rejected lines to a file, as they are in their input files, so that a person can repair them."""
    from cli.quarantine.repair import export_lines

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
