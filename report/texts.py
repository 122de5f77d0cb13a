"""Text of others, as a page shows it. Pure."""

from __future__ import annotations

from html import escape

from lake.texts import printable

BILLION = 10**9
MAX_TEXT = 300
"""Characters of a text of others; a reason can quote a whole line."""


def safe(text: str) -> str:
    """Text of others in HTML: visible characters only, at most ``MAX_TEXT``, and no markup."""
    visible = printable(text)
    return escape(visible if len(visible) <= MAX_TEXT else f"{visible[:MAX_TEXT]}…")


def large(number: int) -> str:
    """A count that fits a tile: all digits below a billion, three of them from there on."""
    return f"{number:,}" if number < BILLION else f"{number / BILLION:,.3g} billion"


def reason_line(reason: str) -> str:
    """A reason on a line of its own; nothing without one."""
    return f'<span class="reason">{safe(reason)}</span>' if reason else ""
