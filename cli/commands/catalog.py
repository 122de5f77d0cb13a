"""Commands for the tables of the lake."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from cli.catalog.view_sql import Dialect  # noqa: TC001
from cli.commands.options import Json, on_stack

if TYPE_CHECKING:
    from cli.deployed_stack import DeployedStack

app = typer.Typer(no_args_is_help=True)


@app.command()
@on_stack
def suggest(
    stack: DeployedStack,
    dataset: Annotated[str, typer.Argument(help="Name of the dataset.")],
    files: Annotated[int, typer.Option(min=1, max=1000, help="Maximum number of Parquet objects to read.")] = 5,
    dialect: Annotated[Dialect | None, typer.Option(help="Print only the SQL of this dialect.")] = None,
    as_json: Json = False,
) -> int:
    """Propose types for the columns of a dataset, count what they refuse, and print a view that casts to them."""
    from cli.catalog.suggest import print_suggestion

    return print_suggestion(stack, dataset, files, dialect, as_json=as_json)


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
