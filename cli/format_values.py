"""Values as people read them: counts, ages, and instants in the time zone of a stage. Pure."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from zoneinfo import ZoneInfo

EVENING_HOUR = 17
"""From this hour of the day on, a time of the same day is said to be tonight."""


def format_duration(seconds: float) -> str:
    """A duration in its two largest units: ``45 s``, ``12 min``, ``3 h 12 min``, ``2 d 5 h``."""
    minutes = int(seconds // 60)
    if minutes < 1:
        return f"{int(seconds)} s"
    if minutes < 60:
        return f"{minutes} min"
    hours, minutes = divmod(minutes, 60)
    if hours < 24:
        return f"{hours} h {minutes} min" if minutes else f"{hours} h"
    days, hours = divmod(hours, 24)
    return f"{days} d {hours} h" if hours else f"{days} d"


def format_dollars(dollars: float) -> str:
    """Dollars with two digits; a smaller amount with four."""
    return f"${dollars:,.2f}" if dollars >= 1 or not dollars else f"${dollars:,.4f}"


def format_instant(instant: datetime, zone: ZoneInfo, now: datetime) -> str:
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
