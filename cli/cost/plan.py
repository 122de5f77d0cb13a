"""``hybrid-router plan``: what the next night would do, before it begins."""

import secrets
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import partial
from typing import Annotated, Any
from zoneinfo import ZoneInfo

import typer

from cli.commands import FirstHour, Json, LastHour, command, given
from cli.deployed_stack import DeployedStack
from cli.errors import ExitCode
from cli.inspect.executions import read_zone
from cli.terminal import print_answer, print_table
from lake.layout import PLAN_AHEAD_EXECUTION
from lake.speed import FAST, SLOW
from lake.texts import format_clock, format_count, format_dollars, format_duration, format_size, printable

DRY_RUN_PREFIX = "dry-run-"
"""Prefix of the names under which ``plan`` writes summaries that belong to no execution."""


@command("plan")
def print_plan(
    stack: DeployedStack,
    dataset: Annotated[str | None, typer.Option(help="Only the queued files of this dataset.")] = None,
    first: FirstHour = None,
    last: LastHour = None,
    engine: Annotated[str | None, typer.Option(help="Only this one of batch.engines.")] = None,
    *,
    as_json: Json = False,
) -> int:
    """Show what the next night would do with what is queued now, and its price: 0 in time, 1 too late."""
    options = given({"dataset": dataset, "from": first, "to": last, "engine": engine})
    # The plan of the whole backlog is the forecast of ``status``, which the function also makes every hour.
    execution = f"{DRY_RUN_PREFIX}{secrets.token_hex(6)}" if options else PLAN_AHEAD_EXECUTION
    answer = stack.invoke("plan", {**options, "execution": execution, "dryRun": True})
    print_answer(answer, lambda: _print(answer, read_zone(stack), datetime.now(UTC)), as_json=as_json)
    return ExitCode.NOT_SO if answer["forecast"]["late_minutes"] else ExitCode.FINE


def _print(answer: Mapping[str, Any], zone: ZoneInfo, now: datetime) -> None:
    clock = partial(format_clock, zone=zone, now=now)
    forecast = answer["forecast"]
    typer.echo(
        f"backlog: {format_count(answer['files'], 'file')}, {format_size(answer['bytes'])}, "
        f"{format_count(answer['manifests'], 'manifest')}; "
        f"quotas: {printable(answer['quotas'])}"
    )
    if answer["leftFrom"]:
        left = clock(answer["leftFrom"])
        typer.echo(f"NOT ALL: a plan has no room for manifests from {left} on ({zone.key}); the next has")
    typer.echo(f"prices: {printable(answer['prices'])}")
    if answer["datasets"]:
        datasets = [
            (
                row["dataset"],
                f"{row['files']:,}",
                format_size(row["bytes"]),
                f"{format_size(row['bytes'] / row['coreSeconds'])}/s",
                row["speedIs"],
            )
            for row in answer["datasets"]
        ]
        print_table("Backlog by dataset", ("dataset",), ("files", "size", "a vCPU converts", "speed is"), datasets)
    if not answer["runs"]:
        typer.echo("nothing to convert")
        return
    runs = f"{format_count(answer['runs'], 'run')} of {format_count(answer['workers'], 'worker')} on {answer['engine']}"
    times = f"{clock(forecast['start'])} to {clock(forecast['end'])}"
    typer.echo(f"{runs}, {answer['maxConcurrency']} side by side: {times}, {format_dollars(forecast['dollars'])}")
    if forecast["dollars_high"] > forecast["dollars_low"]:
        low, high = (
            f"{forecast[f'minutes_{end}']:,.0f} minutes, {format_dollars(forecast[f'dollars_{end}'])}"
            for end in ("low", "high")
        )
        typer.echo(f"from {low} to {high}: a speed is assumed, and S3 may be read {FAST:g} or {SLOW:g} times as fast")
    typer.echo(
        f"requests, ledger and functions: {format_dollars(forecast['other_dollars'])}; "
        f"what it writes: {format_dollars(forecast['storage_dollars_per_month'])} for each month of storage"
    )
    deadline = f"the deadline is {clock(forecast['deadline'])}; times in {zone.key}"
    if late := forecast["late_minutes"]:
        typer.echo(f"TOO LATE by {format_duration(60 * late)}: {deadline}; the oldest hours come first")
    else:
        typer.echo(deadline if forecast["fits"] else f"{deadline}; with less than a tenth of the time to spare")
    use = {**dict.fromkeys(answer["engines"], ""), answer["engine"]: "planned"}
    rows = [
        (
            option["engine"],
            use.get(option["engine"], "not allowed"),
            f"{option['workers']:,}",
            f"{option['concurrency']:,}",
            f"{option['runs']:,}",
            f"{option['minutes']:,.0f}",
            format_dollars(option["dollars"]),
        )
        for option in forecast["options"]
    ]
    numbers = ("workers", "side by side", "runs", "minutes", "dollars")
    print_table("The best way on each engine", ("engine", ""), numbers, rows)
