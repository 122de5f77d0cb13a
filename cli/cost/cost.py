"""``hybrid-router cost`` and ``plan``: what the conversion of some days cost, and what the next night would do."""

import secrets
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, date, datetime
from functools import partial
from typing import Annotated, Any, Literal
from zoneinfo import ZoneInfo

import typer

from cli.commands import Answer, FirstHour, LastHour, given
from cli.deployed_stack import DeployedStack
from cli.errors import ExitCode
from cli.inspect.executions import read_zone
from cli.terminal import print_table
from lake.engines.description import MICRO
from lake.errors import InvalidInputError
from lake.layout import DRY_RUN_PREFIX, PLAN_AHEAD_EXECUTION
from lake.ledger import CostRow, CostShare, Ledger
from lake.settings.declaration import DATE
from lake.speed import FAST, SLOW
from lake.texts import (
    format_clock,
    format_count,
    format_dollars,
    format_duration,
    format_known,
    format_size,
    printable,
)
from report.collect import executions_of, metered
from report.figures import BY_ENGINES, NO_DATASET, CostPart, cost_figures
from router.estimate.other_costs import Estimate, estimate


@dataclass(frozen=True, slots=True)
class NightCost:
    execution: str
    planned_dollars: float | None
    """None if the ledger has no plan of the night."""
    dollars: float
    job_runs: int


@dataclass(frozen=True, slots=True)
class CostReport:
    groups: Mapping[str, CostPart]
    total: CostPart
    job_runs: int
    nights: tuple[NightCost, ...]
    estimated: Estimate


MAX_DAYS = 366
"""Each day is at least one request."""
BY_CLOCK = "the clock of this machine: on the local cloud one process stands in for all workers of a run"


def cost_command(
    stack: DeployedStack,
    first: Annotated[str | None, typer.Option("--from", help="UTC day, such as 2026-11-20; default: today.")] = None,
    last: Annotated[str | None, typer.Option("--to", help="UTC day, inclusive; default: today.")] = None,
    by: Annotated[Literal["dataset", "lane", "engine", "day"], typer.Option(help="Group by this.")] = "dataset",
) -> Answer:
    """Show what the job runs of some days cost, and what their plans expected."""
    today = str(datetime.now(UTC).date())
    days = _days(today if first is None else first, today if last is None else last)
    report, source = read_costs(stack.ledger, days[0], days[-1], by), metered_by(stack, *days)
    body = {
        "from": str(days[0]),
        "to": str(days[-1]),
        "by": by,
        "metered": source,
        "groups": [{"name": name, **_sum(group)} for name, group in report.groups.items()],
        "total": {**_sum(report.total), "jobRuns": report.job_runs},
        "nights": report.nights,
        "estimated": asdict(report.estimated),
    }
    return Answer(body, lambda: _print(report, by, source))


def _sum(part: CostPart) -> dict[str, float | None]:
    return {
        "dollars": part.dollars,
        "bytes": part.bytes,
        "files": part.files,
        "dollarsPerGb": part.dollars_per_gb,
    }


def metered_by(stack: DeployedStack, first: date, last: date) -> str:
    return metered(stack.ledger, first, last, BY_CLOCK if stack.local else BY_ENGINES)


def read_costs(ledger: Ledger, first: date, last: date, by: str) -> CostReport:
    """The report of the days from ``first`` to ``last``, both inclusive.

    A night has runs on several days, and is shown as a whole.
    """

    def group(row: CostRow, share: CostShare) -> str:
        return share.dataset or NO_DATASET if by == "dataset" else str(getattr(row, by))

    figures = cost_figures(ledger.costs.of_days(first, last), group)
    rows = figures.job_runs
    nights = []
    for item in executions_of(ledger, rows):
        planned = item.recorded.get("micro_dollars")
        dollars = None if planned is None else planned / MICRO
        actual = sum(run.micro_dollars for run in item.job_runs) / MICRO
        nights.append(NightCost(item.name, dollars, actual, len(item.job_runs)))
    groups = dict(sorted(figures.groups.items())) if by == "day" else figures.groups
    job_runs = len({row.job_run for row in rows})
    return CostReport(groups, figures.total, job_runs, tuple(nights), estimate(rows))


def _days(first: str, last: str) -> tuple[date, date]:
    days = parse_day("--from", first), parse_day("--to", last)
    if days[0] > days[1]:
        raise InvalidInputError(f"--from {first} is later than --to {last}: swap them")
    if (days[1] - days[0]).days >= MAX_DAYS:
        raise InvalidInputError(f"--from {first} --to {last} are more than {MAX_DAYS} days: pass a shorter range")
    return days


def parse_day(option: str, text: str) -> date:
    """The day that an option names. Raises ``InvalidInputError``."""
    if DATE.refusal(text) is not None:
        raise InvalidInputError(f"{option} {text!r} is not a valid day: pass one such as 2026-11-20")
    return date.fromisoformat(text)


def _print(report: CostReport, by: str, source: str) -> None:
    if not report.job_runs:
        typer.echo(f"no job run has ended on these days; known from {source}")
    else:
        groups = [*report.groups.items(), ("total", report.total)]
        rows = [
            (
                printable(name),
                f"{group.dollars:,.4f}",
                format_size(group.bytes),
                f"{group.files:,}",
                format_known("{:,.6f}".format, group.dollars_per_gb),
            )
            for name, group in groups
        ]
        print_table(f"Cost of the job runs by {by}", (by,), ("dollars", "input", "files", "$ per GB in"), rows)
        typer.echo(f"{format_count(report.job_runs, 'job run')}, from {source}")
    if report.nights:
        nights = [
            (
                printable(night.execution),
                format_known("{:,.4f}".format, night.planned_dollars, "unknown"),
                f"{night.dollars:,.4f}",
                f"{night.job_runs:,}",
            )
            for night in report.nights
        ]
        print_table("Plan and outcome of the nights", ("execution",), ("planned $", "dollars", "job runs"), nights)
    if report.job_runs:
        extra = report.estimated
        typer.echo(
            f"estimated in addition, from counted units: {format_dollars(extra.total)} "
            f"(requests {format_dollars(extra.requests)}, ledger {format_dollars(extra.ledger)}, "
            f"functions {format_dollars(extra.functions)}); "
            f"the output costs {format_dollars(extra.storage_per_month)} a month while it is kept"
        )


def plan_command(
    stack: DeployedStack,
    dataset: Annotated[str | None, typer.Option(help="Only the queued files of this dataset.")] = None,
    first: FirstHour = None,
    last: LastHour = None,
) -> Answer:
    """Show what the next night would do with the current backlog, and its price; exit code 1 if it ends too late."""
    options = given({"dataset": dataset, "from": first, "to": last})
    # The plan of the whole backlog is the forecast of ``status``, which the function also makes every hour.
    execution = f"{DRY_RUN_PREFIX}{secrets.token_hex(6)}" if options else PLAN_AHEAD_EXECUTION
    answer = stack.invoke("plan", {**options, "execution": execution, "dryRun": True})
    code = ExitCode.NEGATIVE if answer["forecast"]["late_minutes"] else ExitCode.OK
    return Answer(answer, lambda: _print_plan(answer, read_zone(stack), datetime.now(UTC)), code)


def _print_plan(answer: Mapping[str, Any], zone: ZoneInfo, now: datetime) -> None:
    clock = partial(format_clock, zone=zone, now=now)
    forecast = answer["forecast"]
    typer.echo(
        f"backlog: {format_count(answer['files'], 'file')}, {format_size(answer['bytes'])}, "
        f"{format_count(answer['manifests'], 'manifest')}; "
        f"quotas: {printable(answer['quotas'])}"
    )
    if answer["leftFrom"]:
        left = clock(answer["leftFrom"])
        typer.echo(f"NOT ALL: manifests from {left} on ({zone.key}) do not fit into this plan; the next one has them")
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
        if more := answer["files"] - sum(row["files"] for row in answer["datasets"]):
            typer.echo(f"... and {format_count(more, 'file')} of smaller datasets")
    if not answer["runs"]:
        typer.echo("nothing to convert")
        return
    runs = f"{format_count(answer['runs'], 'run')} of {format_count(answer['workers'], 'worker')} on {answer['engine']}"
    times = f"{clock(forecast['start'])} to {clock(forecast['end'])}"
    typer.echo(f"{runs}, {answer['maxConcurrency']} at a time: {times}, {format_dollars(forecast['dollars'])}")
    if forecast["dollars_high"] > forecast["dollars_low"]:
        low, high = (
            f"{forecast[f'minutes_{end}']:,.0f} minutes, {format_dollars(forecast[f'dollars_{end}'])}"
            for end in ("low", "high")
        )
        typer.echo(f"from {low} to {high}: a speed is assumed, and S3 may be read {FAST:g} or {SLOW:g} times as fast")
    typer.echo(
        f"requests, ledger and functions: {format_dollars(forecast['other_dollars'])}; "
        f"its output: {format_dollars(forecast['storage_dollars_per_month'])} for each month of storage"
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
            f"{option['seconds'] / 60:,.0f}",
            format_dollars(option["dollars"]),
        )
        for option in forecast["options"]
    ]
    numbers = ("workers", "at a time", "runs", "minutes", "dollars")
    print_table("The best plan on each engine", ("engine", ""), numbers, rows)
