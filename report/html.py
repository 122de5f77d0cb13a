"""Text and tables as HTML. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from lake.texts import format_count, printable

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


LONG_WORD = 30
"""Characters from which a word is shortened."""
MAX_ROWS = 500
"""Rows of one table; what is left out is counted below it."""


def text(value: str) -> str:
    """A text of ours or of others; of a long word, such as an id, the start is shown, and all of it can be copied."""
    shown = safe(value)
    is_long = max(map(len, value.split()), default=0) > LONG_WORD
    return f'<span class="long" title="{shown}">{shown}</span>' if is_long else shown


def table(texts: Sequence[str], numbers: Sequence[str], rows: Sequence[Sequence[str]], *last: str) -> str:
    """A table of HTML cells: columns of text, those of ``numbers``, which are aligned right, and those of ``last``."""
    columns = [(name, "") for name in texts] + [(name, ' class="number"') for name in numbers]
    columns += [(name, "") for name in last]
    head = "".join(f'<th scope="col"{kind}>{safe(name)}</th>' for name, kind in columns)
    body = "".join(
        f"<tr>{''.join(f'<td{kind}>{cell}</td>' for cell, (_, kind) in zip(row, columns, strict=True))}</tr>"
        for row in rows[:MAX_ROWS]
    )
    more = len(rows) - MAX_ROWS
    left = f"<p>{format_count(more, 'more row is', 'more rows are')} not shown.</p>" if more > 0 else ""
    return f'<div class="wide"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>{left}'
