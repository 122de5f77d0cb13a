"""Commands that only read a deployed stack: what happened, and where is my file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from cli.commands.options import Json, PageFile, on_stack

if TYPE_CHECKING:
    from cli.deployed_stack import DeployedStack

app = typer.Typer()


@app.command()
@on_stack
def status(stack: DeployedStack) -> int:
    """Show open manifests by lane and state, their ages, and the stream's health."""
    from cli.status import print_status

    return print_status(stack)


@app.command()
@on_stack
def explain(stack: DeployedStack, uri: str) -> int:
    """Show where a file is: everything that the ledger knows about s3://bucket/key."""
    from cli.explain import print_explanation

    return print_explanation(stack, uri)


@app.command()
@on_stack
def hours(
    stack: DeployedStack,
    dataset: Annotated[str, typer.Option(help="Name of the dataset.")],
    first: Annotated[str, typer.Option("--from", help="UTC day or hour, such as 2026-11-21T08.")],
    last: Annotated[str, typer.Option("--to", help="UTC day or hour, inclusive.")],
    as_json: Json = False,
) -> int:
    """Show which hours of a dataset are complete, with counts: 0 all of them, 1 rows are still to come or missing."""
    from cli.hours import print_hours

    return print_hours(stack, dataset, first, last, as_json=as_json)


@app.command()
@on_stack
def report(
    stack: DeployedStack,
    day: Annotated[str | None, typer.Option("--date", help="UTC day, such as 2026-11-20.")] = None,
    execution: Annotated[str | None, typer.Option(help="Name of an execution of overnight or backfill.")] = None,
    output: PageFile = None,
    open_page: Annotated[bool, typer.Option("--open", help="Show it in the browser.")] = False,
) -> int:
    """Write one HTML page about a night or a day: latency, backlog, runs, plan and outcome, rejects, cost, alarms."""
    from cli.report import write_report

    return write_report(stack, day, execution, output, open_page=open_page)
