"""When the night begins for which a dry run plans. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lake.settings.schedule_expression import DAILY
from lake.time import next_local_time

if TYPE_CHECKING:
    from datetime import datetime

    from lake.settings import Settings


def next_night_start(settings: Settings, now: datetime) -> datetime:
    """The next start of ``schedule.overnight`` after ``now`` (aware); ``now`` unless it is a time of every day."""
    return next_daily_start(settings.schedule.overnight, settings.time_zone, now) or now


def next_daily_start(expression: str, time_zone: str, now: datetime) -> datetime | None:
    """The next start of a schedule after ``now`` (aware); None unless it starts once every day."""
    match = DAILY.fullmatch(expression)
    if match is None:
        return None
    minute, hour = int(match[1]), int(match[2])
    return next_local_time(f"{hour:02d}:{minute:02d}", time_zone, now)
