"""Commands for the tables of the lake: types for columns, and Iceberg tables."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cli.catalog.view_sql import Dialect
from cli.commands.options import Json, Local, Profile, Region, Stage, on_stack

if TYPE_CHECKING:
    from cli.deployed_stack import DeployedStack

app = typer.Typer(no_args_is_help=True)

Dataset = Annotated[str, typer.Argument(help="Name of the dataset.")]


@app.command()
@on_stack
def status(
    stack: DeployedStack,
    dataset: Annotated[str | None, typer.Argument(help="Only the table of this dataset.")] = None,
    as_json: Json = False,
) -> int:
    """Show the Iceberg tables, what waits for them, and why one is stopped: 0 all are current, 1 one is not."""
    from cli.inspect.tables import print_table_status

    return print_table_status(stack, dataset, as_json=as_json)


@app.command()
@on_stack
def restore(stack: DeployedStack, dataset: Dataset) -> int:
    """Go back to the last batch: undo what other writers have done to the rows of a table."""
    from cli.inspect.tables import restore_table

    return restore_table(stack, dataset)


@app.command()
@on_stack
def rebuild(stack: DeployedStack, dataset: Dataset) -> int:
    """Make a table anew from the ledger, or for the first time over what is published already."""
    from cli.inspect.tables import rebuild_table

    return rebuild_table(stack, dataset)


catalog_app = typer.Typer(no_args_is_help=True)


@catalog_app.command()
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


@catalog_app.command()
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
