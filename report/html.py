"""Renders text, tables and pages as HTML. Pure."""

import base64
import hashlib
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from html import escape, unescape
from pathlib import Path

from lake.texts import (
    format_count,
    format_dollars,
    format_duration,
    format_instant,
    format_size,
    printable,
    three_digits,
    with_options,
)

BILLION = 10**9
MAX_TEXT = 300
"""Maximum length of an untrusted text; a reason can quote a whole line."""


def safe(text: str) -> str:
    """An untrusted text as HTML: visible characters only, at most ``MAX_TEXT``, and no markup."""
    visible = printable(text)
    return escape(visible if len(visible) <= MAX_TEXT else f"{visible[:MAX_TEXT]}…")


def large(number: int) -> str:
    """A count that fits a tile: all digits below a billion, above that three digits."""
    return f"{number:,}" if number < BILLION else f"{three_digits(number / BILLION)} billion"


def reason_line(reason: str) -> str:
    return f'<span class="reason">{safe(reason)}</span>' if reason else ""


LONG_WORD = 30
"""Length above which a word is shortened."""
MAX_ROWS = 500
"""Maximum rows of one table; a note below it counts the rest."""


@dataclass(frozen=True, slots=True)
class Cell:
    html: str
    order: float | str
    numeric: bool = True


def text(value: str) -> Cell:
    """A text, trusted or not. Of a long word, such as an id, only the start is visible, but all of it can be copied."""
    shown = safe(value)
    is_long = max(map(len, value.split()), default=0) > LONG_WORD
    return Cell(f'<span class="long" title="{shown}">{shown}</span>' if is_long else shown, value, numeric=False)


def _figure(form: Callable[[float], str], value: float | None) -> Cell:
    return Cell("", -1) if value is None else Cell(form(value), value)


number = partial(_figure, "{:,}".format)
size = partial(_figure, format_size)
duration = partial(_figure, format_duration)
dollars = partial(_figure, format_dollars)
dollars_per_gb = partial(_figure, "${:,.6f}".format)
"""Cells for a number, bytes, seconds, dollars, and a price; None for an unknown value."""


def instant(value: str | float) -> Cell:
    """An instant: ISO 8601 or seconds since the epoch; empty if it is unknown."""
    shown = format_instant(value)
    return Cell(shown, shown, numeric=False)


def table(rows: Sequence[Mapping[str, Cell]]) -> str:
    """A table of at least one row by column; a column is numeric if the first row's cell is.

    The page works without its script: the order is then the order of ``rows``.
    """
    head = "".join(
        f'<th scope="col"{_number_class(cell.numeric)}><button type="button">{safe(column)}</button></th>'
        for column, cell in rows[0].items()
    )
    body = "".join(f"<tr>{''.join(map(_cell, row.values()))}</tr>" for row in rows[:MAX_ROWS])
    more = len(rows) - MAX_ROWS
    left = f"<p>{format_count(more, 'more row is', 'more rows are')} not shown.</p>" if more > 0 else ""
    return f'<div class="wide"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>{left}'


def _cell(cell: Cell) -> str:
    return f'<td{_number_class(cell.numeric)} data-order="{safe(str(cell.order))}">{cell.html}</td>'


def _number_class(numeric: bool) -> str:
    return ' class="number"' if numeric else ""


STATIC = Path(__file__).parent / "static"
CHARTS = "chart.umd.min.js"
"""Chart.js, as npm distributes it; its first lines have its version and licence (MIT)."""
SOURCE_MAP = "\n//# sourceMappingURL="
TEXT = re.compile(r"(?<=>)[^<>]+(?=<)")
"""Matches the text between two tags."""


def render_document(title: str, stack: str, header: str, main: str, figures: object, options: str) -> str:
    """A self-contained page from parts that are HTML, and the figures of its charts.

    The commands in its texts get ``options``, such as `` --stage prod``.

    Its content security policy allows only its own script and style, by their hashes. Even if an untrusted
    text became markup, it could load and run nothing.
    """
    header, main = (
        TEXT.sub(lambda found: escape(with_options(unescape(found[0]), options)), part) for part in (header, main)
    )
    style, script, library = _static("report.css"), _static("report.js"), _static(CHARTS).partition(SOURCE_MAP)[0]
    policy = f"default-src 'none'; script-src {_hash(library)} {_hash(script)}; style-src {_hash(style)}"
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<title>{safe(f"{title} · {stack}")}</title>
<style>{style}</style>
</head>
<body>
<header>
<h1>{safe(title)}</h1>
{header}
</header>
<main>
{main}
</main>
<script type="application/json" id="figures">{_embedded(figures)}</script>
<script>{library}</script>
<script>{script}</script>
</body>
</html>
"""


def _embedded(data: object) -> str:
    """JSON that cannot end the element that contains it."""
    return json.dumps(data, separators=(",", ":")).replace("<", "\\u003c")


@cache
def _static(name: str) -> str:
    return (STATIC / name).read_text(encoding="utf-8")


def _hash(content: str) -> str:
    digest = hashlib.sha256(content.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"
