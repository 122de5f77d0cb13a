"""Values as people read them: sizes, durations, dollars and times. Pure."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

SIZES = ((10**15, "PB"), (10**12, "TB"), (10**9, "GB"), (10**6, "MB"), (10**3, "kB"))
SMALLEST_DOLLARS = 0.0001
EVENING_HOUR = 17
"""From this hour of the day on, a time of the same day is said to be tonight."""


def format_size(size: float) -> str:
    """Bytes in decimal units, three digits."""
    for factor, unit in SIZES:
        if size >= factor:
            return f"{size / factor:.3g} {unit}"
    return f"{size:.0f} B"


def format_duration(seconds: float) -> str:
    """A duration in its two largest units: ``4.2 s``, ``2 min 20 s``, ``12 min``, ``3 h 12 min``, ``2 d 5 h``."""
    if seconds < 60:
        return f"{seconds:.3g} s"
    minutes, rest = divmod(int(seconds), 60)
    if minutes < 10:
        return f"{minutes} min {rest} s" if rest else f"{minutes} min"
    if minutes < 60:
        return f"{minutes} min"
    hours, minutes = divmod(minutes, 60)
    if hours < 24:
        return f"{hours} h {minutes} min" if minutes else f"{hours} h"
    days, hours = divmod(hours, 24)
    return f"{days} d {hours} h" if hours else f"{days} d"


def format_dollars(dollars: float) -> str:
    """Dollars with two digits; a smaller amount with four, down to ``< $0.0001``."""
    if 0 < dollars < SMALLEST_DOLLARS:
        return f"< ${SMALLEST_DOLLARS}"
    return f"${dollars:,.2f}" if dollars >= 1 or not dollars else f"${dollars:,.4f}"


def format_instant(instant: str | float) -> str:
    """An instant (ISO 8601 or seconds since the epoch) to the second, UTC; empty if it is."""
    if not isinstance(instant, str):
        return f"{datetime.fromtimestamp(instant, UTC):%Y-%m-%d %H:%M:%S}"
    return f"{read_instant(instant).astimezone(UTC):%Y-%m-%d %H:%M:%S}" if instant else ""


def format_clock(instant: datetime, zone: ZoneInfo, now: datetime) -> str:
    """An instant (aware) on the wall clock of ``zone``: ``tonight 22:00``, ``tomorrow 06:10``, ``2026-11-20 22:00``."""
    local, today = instant.astimezone(zone), now.astimezone(zone).date()
    clock = f"{local:%H:%M}"
    if local.date() == today:
        return f"{'tonight' if local.hour >= EVENING_HOUR and instant > now else 'today'} {clock}"
    if local.date() == today + timedelta(days=1):
        return f"tomorrow {clock}"
    return f"yesterday {clock}" if local.date() == today - timedelta(days=1) else f"{local:%Y-%m-%d} {clock}"


def read_instant(text: str) -> datetime:
    """An instant as the ledger writes it; UTC if it has no offset."""
    instant = datetime.fromisoformat(text)
    return instant if instant.tzinfo else instant.replace(tzinfo=UTC)
