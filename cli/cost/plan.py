"""``hybrid-router plan``: what the next night would do, before it begins."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import typer
from rich.console import Console
from rich.table import Table

from cli.exit_codes import ExitCode
from lake.counted import format_count
from lake.format_values import format_size
from lake.printable import printable
from router.estimate.speed import FAST, SLOW

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cli.deployed_stack import DeployedStack

RANGE = ("low", "high")


def print_plan(stack: DeployedStack, options: Mapping[str, Any], *, as_json: bool) -> int:
    """Plan the present backlog for the next night and print it; nothing is changed.

    ``options`` are the fields of the function's input, None for each option that was not given. Returns the exit code:
    1 when the night ends after its deadline.

    Raises
    ------
    InvalidInputError
        The function refused the options, or failed.
    """
    answer = stack.dry_run_of_plan({name: value for name, value in options.items() if value is not None})
    if as_json:
        typer.echo(json.dumps(answer, indent=2))
    else:
        _print(answer)
    return ExitCode.NOT_SO if answer["forecast"]["late_minutes"] else ExitCode.FINE


def _print(answer: Mapping[str, Any]) -> None:
    console = Console(highlight=False)
    forecast = answer["forecast"]
    typer.echo(
        f"backlog: {format_count(answer['files'], 'file')}, {format_size(answer['bytes'])}, "
        f"{format_count(answer['manifests'], 'manifest')}; "
        f"quotas: {printable(answer['quotas'])}"
    )
    if answer["leftFrom"]:
        typer.echo(f"NOT ALL: a plan has no room for manifests from {_minute(answer['leftFrom'])} UTC on; the next has")
    typer.echo(f"prices: {printable(answer['prices'])}")
    if answer["datasets"]:
        console.print(_datasets(answer["datasets"]))
    if not answer["runs"]:
        typer.echo("nothing to convert")
        return
    runs = f"{format_count(answer['runs'], 'run')} of {format_count(answer['workers'], 'worker')} on {answer['engine']}"
    times = f"{_minute(forecast['start'])} to {_minute(forecast['end'])} UTC"
    typer.echo(f"{runs}, {answer['maxConcurrency']} side by side: {times}, ${forecast['dollars']:,.2f}")
    if forecast["dollars_high"] > forecast["dollars_low"]:
        low, high = (f"{forecast[f'minutes_{end}']:,.0f} minutes, ${forecast[f'dollars_{end}']:,.2f}" for end in RANGE)
        typer.echo(f"from {low} to {high}: a speed is assumed, and S3 may be read {FAST:g} or {SLOW:g} times as fast")
    typer.echo(
        f"requests, ledger and functions: ${forecast['other_dollars']:,.2f}; "
        f"what it writes: ${forecast['storage_dollars_per_month']:,.2f} for each month of storage"
    )
    deadline = f"the deadline is {_minute(forecast['deadline'])} UTC"
    if forecast["late_minutes"]:
        late = format_count(round(forecast["late_minutes"]), "minute")
        typer.echo(f"TOO LATE by {late}: {deadline}; the oldest hours come first")
    else:
        typer.echo(deadline if forecast["fits"] else f"{deadline}: with less than a tenth of the time to spare")
    console.print(_options(answer))


def _datasets(rows: list[Mapping[str, Any]]) -> Table:
    table = Table(title="Backlog by dataset", title_justify="left", header_style="bold")
    table.add_column("dataset")
    for name in ("files", "size", "MB/s per vCPU", "speed is"):
        table.add_column(name, justify="right")
    for row in rows:
        speed = f"{row['mbPerSecondPerCore']:,.1f}"
        table.add_row(
            row["dataset"],
            f"{row['files']:,}",
            format_size(row["bytes"]),
            speed,
            "measured" if row["measured"] else "assumed",
        )
    return table


def _options(answer: Mapping[str, Any]) -> Table:
    table = Table(title="The best way on each engine", title_justify="left", header_style="bold")
    table.add_column("engine")
    for name in ("workers", "side by side", "runs", "minutes", "dollars"):
        table.add_column(name, justify="right")
    table.add_column("")
    for option in answer["forecast"]["options"]:
        chosen = option["engine"] == answer["engine"]
        allowed = option["engine"] in answer["engines"]
        table.add_row(
            option["engine"],
            f"{option['workers']:,}",
            f"{option['concurrency']:,}",
            f"{option['runs']:,}",
            f"{option['minutes']:,.0f}",
            f"{option['dollars']:,.2f}",
            "planned" if chosen else "" if allowed else "not allowed",
        )
    return table


def _minute(instant: str) -> str:
    return instant[:16].replace("T", " ")
