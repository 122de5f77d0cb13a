"""Settings of the schedules: ``schedule``."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated

from lake.schedule import Schedule
from lake.settings.checks import SCHEDULE, TIME
from lake.settings.declaration import Conflict, Range, Unit
from lake.time import minutes_of_day

STOP_GRACE_MINUTES = 15
"""Time that a requested stop may take before the run is killed (StopJobRun): longer than a micro-batch. A killed run
loses nothing but work."""


@dataclass(frozen=True, slots=True)
class ScheduleSettings:
    """When the state machines start and stop, in ``time_zone``; schedules are EventBridge Scheduler expressions."""

    overnight: Annotated[str, SCHEDULE, "Start of the overnight execution."] = "cron(0 22 * * ? *)"
    deadline: Annotated[
        str, TIME, "Time at which the overnight execution should be complete; a plan says whether it will be."
    ] = "06:00"
    stream_start: Annotated[str, SCHEDULE, "Start of the stream window."] = "cron(45 7 ? * MON-FRI *)"
    stream_end: Annotated[str, TIME, "End of the stream window, at which the streaming run is requested to stop."] = (
        "20:15"
    )
    watch_seconds: Annotated[
        int,
        Range(1, 3600),
        Unit("seconds"),
        "Interval at which the stream_window state machine checks the streaming run.",
    ] = 60

    def conflicts(self) -> Iterator[Conflict]:
        """Values that do not fit together."""
        for end, start in (("deadline", "overnight"), ("stream_end", "stream_start")):
            clock = getattr(self, end)
            if minutes_of_day(clock) == Schedule.parse(getattr(self, start)).minute:
                keys = (f"schedule.{end}", f"schedule.{start}")
                yield Conflict(keys, clock, f"expected another time of day than that of schedule.{start}")
