"""``hybrid-router cost``: what the conversion of some days has cost."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, date, datetime
from itertools import chain
from typing import Annotated, Literal

import typer

from cli.commands import Json, command
from cli.deployed_stack import DeployedStack
from cli.terminal import print_answer, print_table
from lake.engines.description import MICRO
from lake.errors import InvalidInputError
from lake.ledger import Ledger
from lake.settings.declaration import DATE
from lake.texts import format_count, format_known, format_size, printable
from report.collect import costs_around, metered
from report.figures import BY_ENGINES, NO_DATASET, CostPart
from router.estimate.other_costs import Estimate, estimate


@dataclass(frozen=True, slots=True)
class NightCost:
    execution: str
    planned_dollars: float | None
    """None: the ledger has no plan of it."""
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


@command("cost")
def print_cost(
    stack: DeployedStack,
    first: Annotated[str | None, typer.Option("--from", help="UTC day, such as 2026-11-20; today without it.")] = None,
    last: Annotated[str | None, typer.Option("--to", help="UTC day, inclusive; today without it.")] = None,
    by: Annotated[Literal["dataset", "lane", "engine", "day"], typer.Option(help="Sum up by this.")] = "dataset",
    *,
    as_json: Json = False,
) -> None:
    """Show what the job runs of some days have cost, and what the plans said."""
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
    print_answer(body, lambda: _print(report, by, source), as_json=as_json)


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
    """The report of the days from ``first`` to ``last``, both inclusive; of each row it keeps the sum of its shares.

    A stream of 10,000 datasets has a million shares a day. A night has runs on several days, and is shown as a whole.
    """
    groups: dict[str, CostPart] = {}
    total, rows = CostPart(), []
    for row in ledger.costs.of_days(first, last):
        for share in row.shares:
            name = share.dataset or NO_DATASET if by == "dataset" else str(getattr(row, by))
            groups.setdefault(name, CostPart()).add(share)
            total.add(share)
        rows.append(row.summed())
    names = dict.fromkeys(row.execution for row in rows if row.execution is not None)
    executions = {name: ledger.executions.get(name) or {} for name in names}
    costs: dict[str | None, list[int]] = {name: [] for name in names}
    for row in chain(rows, costs_around(ledger, executions.values(), first, last)):
        costs.get(row.execution, []).append(row.micro_dollars)
    nights = []
    for name, recorded in executions.items():
        planned = recorded.get("plan", {}).get("micro_dollars")
        dollars = None if planned is None else planned / MICRO
        nights.append(NightCost(name, dollars, sum(costs[name]) / MICRO, len(costs[name])))
    largest_first = sorted(groups.items(), key=lambda item: item[0] if by == "day" else -item[1].micro_dollars)
    return CostReport(
        groups=dict(largest_first),
        total=total,
        job_runs=len({row.job_run for row in rows}),
        nights=tuple(nights),
        estimated=estimate(rows),
    )


def _days(first: str, last: str) -> tuple[date, date]:
    days = parse_day("--from", first), parse_day("--to", last)
    if days[0] > days[1]:
        raise InvalidInputError(f"--from {first} is later than --to {last}: swap them")
    if (days[1] - days[0]).days >= MAX_DAYS:
        raise InvalidInputError(f"--from {first} --to {last} are more than {MAX_DAYS} days: ask for fewer at a time")
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
            f"estimated in addition, from counted units: ${extra.total:,.4f} (requests ${extra.requests:,.4f}, ledger "
            f"${extra.ledger:,.4f}, functions ${extra.functions:,.4f}); the output costs "
            f"${extra.storage_per_month:,.4f} a month while it is kept"
        )
