"""Instants as the ledger and the documents write them, and the deployment's local wall clock."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from lake.settings.checks import minutes_of_day


def iso_utc(instant: datetime) -> str:
    """ISO 8601 in UTC with milliseconds of an aware instant."""
    return instant.astimezone(UTC).isoformat(timespec="milliseconds")


def epoch_milliseconds(instant: datetime) -> int:
    """Milliseconds since 1970-01-01T00:00:00Z of an aware instant."""
    return int(instant.timestamp() * 1000)


def next_local_time(clock: str, time_zone: str, now: datetime) -> datetime:
    """The next instant, in UTC, at which the local wall clock shows ``HH:MM``; later than ``now`` (aware)."""
    zone, minutes = ZoneInfo(time_zone), minutes_of_day("schedule", clock)
    local = now.astimezone(zone)
    midnight = datetime(local.year, local.month, local.day, tzinfo=zone)
    for days in (0, 1, 2):
        # Wall-clock arithmetic: the zone's offset is applied after the addition.
        instant = (midnight + timedelta(days=days, minutes=minutes)).astimezone(UTC)
        if instant > now:
            return instant
    raise AssertionError(f"no {clock} within two days of {now}")
