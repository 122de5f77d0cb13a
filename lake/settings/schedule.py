"""Settings of ``schedule``."""

from __future__ import annotations

from dataclasses import dataclass

from lake.errors import InvalidSettingsError
from lake.settings.checks import check_range, minutes_of_day


@dataclass(frozen=True, slots=True)
class ScheduleSettings:
    """When machines start, in the deployment's time zone."""

    overnight: str = "cron(0 22 * * ? *)"
    """EventBridge Scheduler expression."""
    deadline: str = "06:00"
    """The night's work should be done by then."""
    stream_start: str = "cron(45 7 ? * MON-FRI *)"
    stream_end: str = "20:15"
    """``stream_window`` sets the stop flag then."""
    stop_grace_minutes: int = 15
    """After so long the streaming run is killed by StopJobRun."""
    watch_seconds: int = 60
    """How often ``stream_window`` looks after the streaming run."""

    def __post_init__(self) -> None:
        for key in ("overnight", "stream_start"):
            if not getattr(self, key).startswith(("cron(", "rate(", "at(")):
                raise InvalidSettingsError(
                    f"schedule.{key}", getattr(self, key), "expected cron(...), rate(...), at(...)"
                )
        minutes_of_day("schedule.deadline", self.deadline)
        minutes_of_day("schedule.stream_end", self.stream_end)
        check_range("schedule.stop_grace_minutes", self.stop_grace_minutes, 1, 240)
        check_range("schedule.watch_seconds", self.watch_seconds, 1, 3600)
