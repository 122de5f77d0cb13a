"""Settings of the schedules: ``schedule``."""

from __future__ import annotations

from dataclasses import dataclass

from lake.errors import InvalidSettingsError
from lake.settings.checks import check_range, minutes_of_day
from lake.settings.schedule_expression import check_schedule, minute_of_start


@dataclass(frozen=True, slots=True)
class ScheduleSettings:
    """When the state machines start and stop, in ``time_zone``."""

    overnight: str = "cron(0 22 * * ? *)"
    """Start of the overnight execution: an EventBridge Scheduler expression."""
    deadline: str = "06:00"
    """``HH:MM`` at which the overnight execution should be complete; a plan says whether it will be."""
    stream_start: str = "cron(45 7 ? * MON-FRI *)"
    """Start of the stream window: an EventBridge Scheduler expression."""
    stream_end: str = "20:15"
    """``HH:MM`` of the end of the stream window: the streaming run is then requested to stop."""
    stop_grace_minutes: int = 15
    """Time that a requested stop may take before the run is killed (StopJobRun)."""
    watch_seconds: int = 60
    """Interval at which the ``stream_window`` machine checks the streaming run."""

    def __post_init__(self) -> None:
        for key in ("overnight", "stream_start"):
            check_schedule(f"schedule.{key}", getattr(self, key))
        for end, start in (("deadline", "overnight"), ("stream_end", "stream_start")):
            key, value = f"schedule.{end}", getattr(self, end)
            if minutes_of_day(key, value) == minute_of_start(getattr(self, start)):
                raise InvalidSettingsError(key, value, f"expected another time of day than that of schedule.{start}")
        check_range("schedule.stop_grace_minutes", self.stop_grace_minutes, 1, 240)
        check_range("schedule.watch_seconds", self.watch_seconds, 1, 3600)
