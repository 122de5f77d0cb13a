"""The times of a simulated day: when its night begins, and its stream window."""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo

from lake.errors import InvalidInputError
from lake.schedule import Schedule
from lake.settings import Settings
from lake.time import local_time, next_local_time


def night_start(settings: Settings, day: date) -> datetime:
    """Start of the night (aware) on a local date.

    Raises
    ------
    InvalidInputError
        ``schedule.overnight`` is not one time of the day, or not on this day of the week.
    """
    start = _start_on("schedule.overnight", settings.schedule.overnight, day, settings.time_zone)
    if start is None:
        raise InvalidInputError(
            f"no night begins on {day:%Y-%m-%d}, a {day:%A}: schedule.overnight = {settings.schedule.overnight!r}; "
            "pass the date of another night"
        )
    return start


def stream_window(settings: Settings, night: datetime) -> tuple[datetime, datetime] | None:
    """The stream window of the local date on which the night begins (aware); None: there is none on this day."""
    if not settings.peak.hours or not settings.peak.days:
        return None
    schedule, zone = settings.schedule, settings.time_zone
    day = night.astimezone(ZoneInfo(zone)).date()
    begin = _start_on("schedule.stream_start", schedule.stream_start, day, zone)
    if begin is None:
        return None
    if schedule.stream_end == "24:00" and begin.astimezone(ZoneInfo(zone)).time() == time():
        return night - timedelta(days=1), night
    return begin, next_local_time(schedule.stream_end, zone, begin)


def _start_on(key: str, expression: str, day: date, time_zone: str) -> datetime | None:
    """The start (UTC) of a schedule on a local date; None if it does not start on this day of the week."""
    schedule = Schedule.parse(expression)
    if schedule.minute is None or schedule.days is None:
        raise InvalidInputError(
            f"{key} = {expression!r} cannot be simulated: pass settings in which it is one time of the day, such as "
            "cron(0 22 * * ? *) or cron(45 7 ? * MON-FRI *)"
        )
    noon = datetime.combine(day, time(12), ZoneInfo(time_zone)).astimezone(UTC)
    return local_time(schedule.minute, time_zone, noon, 0) if schedule.starts_on(day) else None
