"""Commands for the Iceberg tables."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from cli.commands.options import Json, on_stack

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
