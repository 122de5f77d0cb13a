"""Commands that only read a deployed stack: what happened, where a file is, and whether hours are proven."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cli.commands.options import Json, Limit, on_stack

if TYPE_CHECKING:
    from cli.deployed_stack import DeployedStack

app = typer.Typer()


@app.command()
@on_stack
def status(stack: DeployedStack, limit: Limit = 20_000, as_json: Json = False) -> int:
    """Show what waits, what failed, whether the stream is alive, tonight's forecast, last night and open alarms."""
    from cli.inspect.status import print_status

    return print_status(stack, limit, as_json=as_json)


@app.command()
@on_stack
def night(
    stack: DeployedStack,
    which: Annotated[
        str, typer.Argument(help="last, a local date such as 2026-11-20, or an execution's name.")
    ] = "last",
    limit: Limit = 100,
    as_json: Json = False,
) -> int:
    """Show one execution of overnight: outcome, plan and actual, datasets, what failed, job runs: 1 if it failed."""
    from cli.inspect.night import print_night

    return print_night(stack, which, limit, as_json=as_json)


@app.command()
@on_stack
def nights(stack: DeployedStack, limit: Limit = 20, as_json: Json = False) -> int:
    """List the last executions of overnight with their outcome."""
    from cli.inspect.night import print_nights

    return print_nights(stack, limit, as_json=as_json)


@app.command()
@on_stack
def failures(
    stack: DeployedStack,
    dataset: Annotated[str | None, typer.Option(help="Only those of this dataset.")] = None,
    limit: Limit = 100,
    as_json: Json = False,
) -> int:
    """List every manifest and file that did not get through, why, and what to run: 0 none, 1 some."""
    from cli.inspect.failures import print_failures

    return print_failures(stack, dataset, limit, as_json=as_json)


@app.command()
@on_stack
def explain(
    stack: DeployedStack,
    uri: Annotated[str, typer.Argument(help="s3://bucket/key of a file, or of an object of lake or quarantine.")],
    limit: Limit = 100,
    as_json: Json = False,
) -> int:
    """Show where a file is, why, and when it will be converted; or from which files an object was made."""
    from cli.inspect.explain import print_explanation

    return print_explanation(stack, uri, limit, as_json=as_json)


@app.command()
@on_stack
def logs(
    stack: DeployedStack,
    name: Annotated[
        str, typer.Argument(help="A function, such as sweep; batch or stream; records; or executions that failed.")
    ],
    since: Annotated[str, typer.Option(help="How far back: 30m, 3h or 2d.")] = "3h",
    contains: Annotated[str | None, typer.Option(help="Only events with this text, such as ERROR or ALARM.")] = None,
    run: Annotated[str | None, typer.Option(help="Only this job run, as night and explain name it.")] = None,
    limit: Annotated[int, typer.Option(min=1, help="Maximum number of events, the last ones.")] = 100,
    as_json: Json = False,
) -> int:
    """Print what a function, the jobs or Firehose have logged, or which executions have failed, and why."""
    from cli.inspect.logs import print_logs

    return print_logs(stack, name, since, contains, run, limit, as_json=as_json)


@app.command()
@on_stack
def outputs(
    stack: DeployedStack,
    name: Annotated[str | None, typer.Argument(help="Print the value of this output alone.")] = None,
    as_json: Json = False,
) -> int:
    """Print names, URLs and ARNs of the stack's buckets, queues, functions and state machines."""
    from cli.inspect.outputs import print_outputs

    return print_outputs(stack, name, as_json=as_json)


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
    from cli.inspect.hours import print_hours

    return print_hours(stack, dataset, first, last, as_json=as_json)


@app.command()
@on_stack
def report(
    stack: DeployedStack,
    day: Annotated[str | None, typer.Option("--date", help="UTC day, such as 2026-11-20.")] = None,
    execution: Annotated[str | None, typer.Option(help="Name of an execution of overnight or backfill.")] = None,
    output: Annotated[
        Path | None, typer.Option(help="File to write; report-<day or execution>.html without it; or a folder.")
    ] = None,
    open_page: Annotated[bool, typer.Option("--open", help="Show it in the browser.")] = False,
    as_json: Json = False,
) -> int:
    """Write one HTML page about a night or a day; without either, a folder with the last 30 days and their nights."""
    from cli.inspect.report import write_report

    return write_report(stack, day, execution, output, open_page=open_page, as_json=as_json)


@app.command()
@on_stack
def verify(
    stack: DeployedStack,
    dataset: Annotated[str, typer.Option(help="Dataset to prove.")],
    first: Annotated[str, typer.Option("--from", help="UTC day or hour, such as 2026-11-21T08.")],
    last: Annotated[str, typer.Option("--to", help="UTC day or hour, inclusive.")],
    share: Annotated[float, typer.Option(help="Share of the manifests that are compared, above 0, at most 1.")] = 1.0,
    as_json: Json = False,
) -> int:
    """Prove hours from the input files: 0 proven, 1 differs, 2 wrong use, 3 cannot be proven or not reachable."""
    from cli.inspect.verify import verify as verify_hours

    return verify_hours(stack, {"dataset": dataset, "from": first, "to": last}, share, as_json=as_json)
