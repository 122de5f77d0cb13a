"""Instants as the ledger and the documents write them, and the local wall clock of a deployment."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

TIME_OF_DAY = re.compile(r"([01]\d|2[0-3]):[0-5]\d|24:00")
"""``HH:MM``; ``24:00`` is the end of the day."""


def iso_utc(instant: datetime) -> str:
    """An aware instant as ISO 8601 in UTC with milliseconds."""
    return instant.astimezone(UTC).isoformat(timespec="milliseconds")


def epoch_milliseconds(instant: datetime) -> int:
    """An aware instant as milliseconds since 1970-01-01T00:00:00Z."""
    return int(instant.timestamp() * 1000)


def minutes_of_day(clock: str) -> int:
    """Minutes from midnight to ``HH:MM``, a match of ``TIME_OF_DAY``."""
    hours, minutes = clock.split(":")
    return int(hours) * 60 + int(minutes)


def next_local_time(clock: str, time_zone: str, now: datetime) -> datetime:
    """The first instant (UTC) after ``now`` (aware) at which the wall clock of ``time_zone`` shows ``clock``."""
    return next(
        instant for days in (0, 1, 2) if (instant := local_time(minutes_of_day(clock), time_zone, now, days)) > now
    )


def local_time(minute: int, time_zone: str, now: datetime, days: int) -> datetime:
    """The instant (UTC) of a minute of the day on the wall clock of ``time_zone``, ``days`` after ``now``'s date."""
    zone = ZoneInfo(time_zone)
    local = now.astimezone(zone)
    midnight = datetime(local.year, local.month, local.day, tzinfo=zone)
    # Wall-clock arithmetic on purpose: the zone's offset applies after the addition.
    return (midnight + timedelta(days=days, minutes=minute)).astimezone(UTC)
