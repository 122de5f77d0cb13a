"""Instants as the ledger and the documents write them, and the local wall clock of a deployment."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from lake.settings.checks import minutes_of_day


def iso_utc(instant: datetime) -> str:
    """An aware instant as ISO 8601 in UTC with milliseconds."""
    return instant.astimezone(UTC).isoformat(timespec="milliseconds")


def epoch_milliseconds(instant: datetime) -> int:
    """An aware instant as milliseconds since 1970-01-01T00:00:00Z."""
    return int(instant.timestamp() * 1000)


def next_local_time(clock: str, time_zone: str, now: datetime) -> datetime:
    """The first instant (UTC) after ``now`` (aware) at which the wall clock of ``time_zone`` shows ``clock``."""
    zone, minutes = ZoneInfo(time_zone), minutes_of_day("schedule", clock)
    local = now.astimezone(zone)
    midnight = datetime(local.year, local.month, local.day, tzinfo=zone)
    for days in (0, 1, 2):
        # Wall-clock arithmetic on purpose: the zone's offset applies after the addition.
        instant = (midnight + timedelta(days=days, minutes=minutes)).astimezone(UTC)
        if instant > now:
            return instant
    raise AssertionError(f"no {clock} within two days of {now}")
