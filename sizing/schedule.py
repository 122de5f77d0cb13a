"""The times of a simulated day: when its night begins, and its stream window."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, time, timedelta
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

from lake.errors import InvalidInputError
from lake.settings.checks import minutes_of_day
from lake.settings.routing import DAYS
from lake.time import next_local_time

if TYPE_CHECKING:
    from lake.settings import Settings

_DAY = "(?:" + "|".join(DAYS).upper() + ")"
CRON = re.compile(rf"cron\((\d{{1,2}}) (\d{{1,2}}) [*?] \* ([*?]|{_DAY}(?:[-,]{_DAY})*) \*\)")
"""One time of the day, every day or on days of the week (EventBridge Scheduler, "Cron-based schedules")."""


def night_start(settings: Settings, day: date) -> datetime:
    """Start of the night (aware) on a local date.

    Raises
    ------
    InvalidInputError
        ``schedule.overnight`` is not one time of the day, or not on this day of the week.
    """
    start = _time_on("schedule.overnight", settings.schedule.overnight, day)
    if start is None:
        raise InvalidInputError(
            f"no night begins on {day:%Y-%m-%d}, a {day:%A}: schedule.overnight = {settings.schedule.overnight!r}; "
            "pass the date of another night"
        )
    return _instant(day, start, settings)


def stream_window(settings: Settings, night: datetime) -> tuple[datetime, datetime] | None:
    """The stream window of the local date on which the night begins (aware); None: there is none on this day."""
    if not settings.peak.hours or not settings.peak.days:
        return None
    day = night.astimezone(ZoneInfo(settings.time_zone)).date()
    start = _time_on("schedule.stream_start", settings.schedule.stream_start, day)
    if start is None:
        return None
    begin = _instant(day, start, settings)
    if minutes_of_day("schedule.stream_end", settings.schedule.stream_end) == 24 * 60 and start == time():
        return night - timedelta(days=1), night
    return begin, next_local_time(settings.schedule.stream_end, settings.time_zone, begin)


def _instant(day: date, clock: time, settings: Settings) -> datetime:
    """In UTC: adding hours to a local time would follow the wall clock."""
    return datetime.combine(day, clock, ZoneInfo(settings.time_zone)).astimezone(UTC)


def _time_on(key: str, schedule: str, day: date) -> time | None:
    match = CRON.fullmatch(schedule)
    if match is None:
        raise InvalidInputError(
            f"{key} = {schedule!r} cannot be simulated: pass settings in which it is one time of the day, such as "
            "cron(0 22 * * ? *) or cron(45 7 ? * MON-FRI *)"
        )
    minute, hour, days = int(match[1]), int(match[2]), match[3].lower()
    return time(hour, minute) if days in "*?" or DAYS[day.weekday()] in _days(days) else None


def _days(text: str) -> set[str]:
    found: set[str] = set()
    for part in text.split(","):
        first, _, last = part.partition("-")
        begin, end = DAYS.index(first), DAYS.index(last or first)
        found |= set(DAYS[begin : end + 1] if begin <= end else (*DAYS[begin:], *DAYS[: end + 1]))
    return found
