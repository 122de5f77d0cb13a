"""Numbers, sizes, times and text of others, as a page shows them. Pure."""

from __future__ import annotations

from datetime import UTC, datetime
from html import escape

from lake.printable import printable

SIZES = ((10**15, "PB"), (10**12, "TB"), (10**9, "GB"), (10**6, "MB"), (10**3, "kB"))
DURATIONS = ((86_400, "d"), (3600, "h"), (60, "min"))
MAX_TEXT = 300
"""Characters of a text of others; a reason can quote a whole line."""


def safe(text: str) -> str:
    """Text of others in HTML: visible characters only, at most ``MAX_TEXT``, and no markup."""
    visible = printable(text)
    return escape(visible if len(visible) <= MAX_TEXT else f"{visible[:MAX_TEXT]}…")


def format_size(size: float) -> str:
    """Bytes in decimal units, three digits."""
    for factor, unit in SIZES:
        if size >= factor:
            return f"{size / factor:.3g} {unit}"
    return f"{size:.0f} B"


def format_duration(seconds: float) -> str:
    """Seconds with one decimal place; longer times in minutes, hours or days."""
    for factor, unit in DURATIONS:
        if seconds >= 2 * factor:
            return f"{seconds / factor:.1f} {unit}"
    return f"{seconds:.1f} s" if seconds < 100 else f"{seconds:.0f} s"


def format_dollars(dollars: float) -> str:
    """Dollars and cents; small sums with four decimal places."""
    return f"${dollars:,.2f}" if dollars >= 1 else f"${dollars:,.4f}"


def format_instant(instant: str | float) -> str:
    """An instant (ISO 8601 or seconds since the epoch) to the second, UTC."""
    if not isinstance(instant, str):
        return f"{datetime.fromtimestamp(instant, UTC):%Y-%m-%d %H:%M:%S}"
    return f"{datetime.fromisoformat(instant).astimezone(UTC):%Y-%m-%d %H:%M:%S}" if instant else ""
