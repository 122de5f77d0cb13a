"""Costs: each job run once, its parts add up to it, and the job runs to the sum of their day."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.model.scheduler import Violation

if TYPE_CHECKING:
    from tests.model.world import World


def check_costs(world: World) -> None:
    """Raise ``Violation`` unless the cost rows add up."""
    items = world.dynamodb.items.items()
    days: dict[str, int] = {}
    for (pk, job_run), item in items:
        if not pk.startswith("cost#"):
            continue
        parts = sum(share["micro_dollars"] for share in item["shares"])
        if parts != item["micro_dollars"]:
            raise Violation(f"job run {job_run} costs {item['micro_dollars']}, and its parts {parts}")
        day = pk.removeprefix("cost#")
        days[day] = days.get(day, 0) + item["micro_dollars"]
    sums = {day: item["micro_dollars"] for (pk, day), item in items if pk == "cost-sum"}
    if sums != days:
        raise Violation(f"the job runs of each day cost {days}, and the sums of the days are {sums}")
