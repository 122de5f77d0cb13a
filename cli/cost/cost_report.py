"""Cost rows of some days as groups, nights and their sum. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from cli.cost.cost_by import CostBy
from lake.bills import MICRO
from lake.ledger import CostRow, CostShare
from report.costs import CostPart
from router.estimate.other_costs import Estimate, estimate

NO_DATASET = "(no manifest)"
"""Shown for a job run that held no manifest: it failed early, or found everything done."""


@dataclass(frozen=True, slots=True)
class NightCost:
    """An execution: what its plan said, and what its job runs have cost."""

    execution: str
    planned_dollars: float | None
    """None: the ledger has no plan of it."""
    dollars: float
    job_runs: int


@dataclass(frozen=True, slots=True)
class CostReport:
    """The costs of some days."""

    groups: Mapping[str, CostPart]
    total: CostPart
    job_runs: int
    nights: tuple[NightCost, ...]
    estimated: Estimate
    differences: tuple[str, ...]
    """What does not add up; empty: everything does."""


def cost_report(
    rows: Sequence[CostRow],
    near: Sequence[CostRow],
    by: CostBy,
    sums: Mapping[str, tuple[int, int]],
    plans: Mapping[str, int | None],
) -> CostReport:
    """The report of ``rows``.

    Parameters
    ----------
    near
        Rows of the days before and after: a night has runs on two days, and is shown as a whole.
    sums
        Millionths of a dollar that the ledger had added up, by day: before the rows were read, and after.
    plans
        Execution -> millionths of a dollar that its plan has forecast.
    """
    groups: dict[str, CostPart] = {}
    total = CostPart()
    for row in rows:
        for share in row.shares:
            groups.setdefault(_name(row, share, by), CostPart()).add(share)
            total.add(share)
    largest_first = sorted(groups.items(), key=lambda item: item[0] if by is CostBy.DAY else -item[1].micro_dollars)
    return CostReport(
        groups=dict(largest_first),
        total=total,
        job_runs=len(rows),
        nights=tuple(_nights([*rows, *near], plans)),
        estimated=estimate(rows),
        differences=tuple(_differences(rows, sums)),
    )


def executions_of(rows: Iterable[CostRow]) -> list[str]:
    """The executions that have planned the job runs, in order."""
    return list(dict.fromkeys(row.execution for row in rows if row.execution is not None))


def _name(row: CostRow, share: CostShare, by: CostBy) -> str:
    if by is CostBy.DATASET:
        return share.dataset or NO_DATASET
    return str({CostBy.LANE: row.lane, CostBy.ENGINE: row.engine, CostBy.DAY: row.day}[by])


def _nights(rows: Sequence[CostRow], plans: Mapping[str, int | None]) -> Iterator[NightCost]:
    for execution, planned in plans.items():
        costs = [row.micro_dollars for row in rows if row.execution == execution]
        yield NightCost(execution, None if planned is None else planned / MICRO, sum(costs) / MICRO, len(costs))


def _differences(rows: Iterable[CostRow], sums: Mapping[str, tuple[int, int]]) -> Iterator[str]:
    """The parts of a job run are its cost, and the costs of a day are its sum."""
    days = dict.fromkeys(sums, 0)
    for row in rows:
        days[row.day] += row.micro_dollars
        parts = sum(share.micro_dollars for share in row.shares)
        if parts != row.micro_dollars:
            yield f"job run {row.id}: its parts are ${parts / MICRO:.6f}, its cost is ${row.micro_dollars / MICRO:.6f}"
    for day, found in days.items():
        before, after = sums[day]
        if not before <= found <= after:
            yield f"{day}: its job runs are ${found / MICRO:.6f}, the sum of the day is ${after / MICRO:.6f}"
