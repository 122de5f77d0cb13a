"""Cost rows: written once, found by day, and summed up as they are written."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from typing import TYPE_CHECKING

import pytest

from lake.ledger import CostRow, CostShare
from lake.manifest import Lane

if TYPE_CHECKING:
    from tests.unit.lake.world import World

SHARES = (CostShare("orders", 700, 10, 1, 1, 5, 2, 4), CostShare("clicks", 300))
ROW = CostRow(
    id="jr_1",
    lane=Lane.BATCH,
    engine="glue-flex",
    started_at="2026-11-20T22:00:00.000+00:00",
    ended_at="2026-11-21T00:10:00.000+00:00",
    seconds=7800,
    dpu_milliseconds=123,
    vcpu_milliseconds=0,
    gb_milliseconds=0,
    micro_dollars=1000,
    shares=SHARES,
    execution="night",
    state="FAILED",
    reason="killed by signal 9",
)
DAY = date(2026, 11, 21)


def test_rows_of_many_days(world: World) -> None:
    stream = replace(ROW, id="jr_2", lane=Lane.STREAM, execution=None, ended_at="2026-11-22T01:00:00.000+00:00")
    for row in (stream, ROW):
        world.ledger.costs.record(row)
    assert list(world.ledger.costs.of_days(DAY, date(2026, 11, 23))) == [ROW, stream]
    assert list(world.ledger.costs.of_days(DAY, DAY)) == [ROW]


def test_a_row_that_is_written_twice_costs_once(world: World) -> None:
    # Given two processes that record the same job run, the second one with other figures
    assert world.ledger.costs.record(ROW)
    assert not world.ledger.costs.record(replace(ROW, micro_dollars=5))
    # Then the first one holds, in the row and in the sum
    assert list(world.ledger.costs.of_days(DAY, DAY)) == [ROW]
    assert world.ledger.costs.day_sum(DAY) == 1000


@pytest.mark.parametrize("costs", [[], [1000], [1000, 25, 0]])
def test_the_sum_of_a_day_is_that_of_its_rows(world: World, costs: list[int]) -> None:
    for number, cost in enumerate(costs):
        world.ledger.costs.record(replace(ROW, id=f"jr_{number}", micro_dollars=cost))
    assert world.ledger.costs.day_sum(DAY) == sum(costs)
