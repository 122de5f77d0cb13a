"""Commands for the tables of the lake."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cli.catalog.view_sql import Dialect
from cli.commands.options import Json, Local, Profile, Region, Stage, on_stack

if TYPE_CHECKING:
    from cli.deployed_stack import DeployedStack

app = typer.Typer(no_args_is_help=True)


@app.command()
def suggest(
    dataset: Annotated[str, typer.Argument(help="Name of the dataset, or its folder in the output of convert.")],
    files: Annotated[int, typer.Option(min=1, max=1000, help="Maximum number of Parquet objects to read.")] = 5,
    dialect: Annotated[Dialect | None, typer.Option(help="Print only the SQL of this dialect.")] = None,
    as_json: Json = False,
    stage: Stage = "dev",
    local: Local = False,
    profile: Profile = None,
    region: Region = None,
) -> None:
    """Propose types for the columns of a dataset, count what they refuse, and print a view that casts to them.

    What contains a slash is a folder, such as converted/lake/orders: it needs no stack.
    """
    from cli.catalog.suggest import print_folder_suggestion, print_suggestion

    if "/" in dataset:
        raise typer.Exit(print_folder_suggestion(Path(dataset), files, dialect, as_json=as_json))
    from cli.connect import connect_to_stage

    stack = connect_to_stage(stage, local=local, profile=profile, region=region)
    raise typer.Exit(print_suggestion(stack, dataset, files, dialect, as_json=as_json))


@app.command()
@on_stack
def drop_columns(
    stack: DeployedStack,
    dataset: Annotated[str, typer.Argument(help="Name of the dataset.")],
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only print the columns.")] = False,
    as_json: Json = False,
) -> int:
    """Drop the columns of a dataset of which no published file has a value, so that it has room for others."""
    from cli.catalog.drop_columns import print_dropped_columns

    return print_dropped_columns(stack, dataset, dry_run=dry_run, as_json=as_json)
