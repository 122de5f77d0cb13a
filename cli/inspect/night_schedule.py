"""When the next night begins: by the schedule of the stack, and by the newest forecast for it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

from cli.deployed_stack import DeployedStack
from cli.documents import PlannedNight
from lake.documents import find_document
from lake.layout import PLAN_AHEAD_EXECUTION, plan_summary_key
from lake.schedule import Schedule
from lake.texts import read_instant


@dataclass(frozen=True, slots=True)
class NightSchedule:
    """The schedule that starts ``overnight``."""

    expression: str
    time_zone: str
    enabled: bool

    @property
    def zone(self) -> ZoneInfo:
        """The time zone of the stage."""
        return ZoneInfo(self.time_zone)

    def next_start(self, now: datetime) -> datetime | None:
        """The next start after ``now`` (aware); None if it is disabled, or if the expression does not decide."""
        return Schedule.parse(self.expression).next_start(self.time_zone, now) if self.enabled else None


def read_schedule(stack: DeployedStack) -> NightSchedule:
    """The schedule as it is deployed. Raises botocore's errors."""
    found = stack.scheduler.get_schedule(Name=stack.outputs.overnight_schedule)
    zone = found.get("ScheduleExpressionTimezone", "UTC")
    return NightSchedule(found["ScheduleExpression"], zone, found.get("State", "ENABLED") == "ENABLED")


def read_forecast(stack: DeployedStack, now: datetime) -> dict[str, Any] | None:
    """The newest plan for the next night, which the function ``plan`` makes every hour; None: there is none, or the
    night that it was made for has begun before ``now`` (aware).

    Raises botocore's errors.
    """
    summary: dict[str, Any] | None = find_document(
        stack.s3, stack.resources.control_bucket, plan_summary_key(PLAN_AHEAD_EXECUTION)
    )
    return summary if summary is not None and read_instant(summary["forecast"]["start"]) > now else None


def planned_night(summary: dict[str, Any] | None) -> PlannedNight | None:
    """A plan's summary with its forecast; None: there is no plan."""
    if summary is None:
        return None
    forecast = summary["forecast"]
    return PlannedNight(
        planned_at=summary["plannedAt"],
        **{name: summary[name] for name in ("engine", "workers", "runs", "manifests", "files", "bytes")},
        **{name: forecast[name] for name in ("start", "end", "deadline", "fits", "minutes", "dollars", "late_minutes")},
    )
