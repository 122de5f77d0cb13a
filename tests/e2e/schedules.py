"""Schedules of the stack, changed for a while."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.e2e.scenario import Scenario

FIELDS = ("Name", "FlexibleTimeWindow", "Target", "ScheduleExpression", "ScheduleExpressionTimezone", "State")
"""What UpdateSchedule would set to its default."""


@contextmanager
def changed_schedule(scenario: Scenario, wanted: Callable[[dict[str, Any]], bool], **changes: str) -> Iterator[None]:
    """The first schedule that is wanted has these fields until the block is left."""
    scheduler = scenario.cloud.client("scheduler")
    names = [item["Name"] for item in scheduler.list_schedules()["Schedules"]]
    given = next(item for name in names if wanted(item := scheduler.get_schedule(Name=name)))
    before = {field: given[field] for field in FIELDS}
    scheduler.update_schedule(**{**before, **changes})
    try:
        yield
    finally:
        scheduler.update_schedule(**before)
