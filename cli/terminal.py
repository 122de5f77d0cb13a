"""What a command shows on the terminal: tables that fit its width, and progress; and how it is ended from outside."""

from __future__ import annotations

import shutil
import signal
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import typer
from rich.cells import cell_len
from rich.console import Console

from lake.texts import printable

if TYPE_CHECKING:
    from rich.status import Status

GAP = "  "


def print_table(title: str, names: Sequence[str], numbers: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print rows below their headers: first columns of text, then those of ``numbers``, which are aligned right."""
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
    typer.echo(format_table(title, names, numbers, rows, width))


def format_table(
    title: str, names: Sequence[str], numbers: Sequence[str], rows: Iterable[Sequence[str]], width: int | None
) -> str:
    """The lines of a table for a terminal of ``width`` characters; None: for a program, with tabs.

    While the columns do not fit side by side, the widest one goes below its row, each cell to a line of its own: texts
    before numbers, and never the first column. A URI is alone in its line, so that it can be copied.
    """
    heads = [*names, *numbers]
    cells = [list(row) for row in rows]
    if width is None:
        lines = ["\t".join(text.replace("\t", " ") for text in line) for line in (heads, *cells)]
        return "\n".join([title, *lines] if title else lines)
    widths = [max(map(cell_len, column)) for column in zip(heads, *cells, strict=True)]
    beside = list(range(len(heads)))
    while sum(widths[place] + len(GAP) for place in beside) - len(GAP) > width and beside != [0]:
        beside.remove(max(beside[1:], key=lambda place: (place < len(names), widths[place])))

    def line(row: Sequence[str]) -> str:
        spaces = {place: " " * (widths[place] - cell_len(row[place])) for place in beside}
        padded = [row[at] + spaces[at] if at < len(names) else spaces[at] + row[at] for at in beside]
        return GAP.join(padded).rstrip()

    lines = [typer.style(text, bold=True) for text in (title, line(heads)) if text]
    for row in cells:
        lines.append(line(row))
        for place, text in enumerate(row):
            if text and place not in beside:
                is_uri = "://" in text.split(" ", 1)[0]
                lines.append(f"{GAP}{text}" if is_uri else f"{GAP}{heads[place]}: {text}")
    return "\n".join(lines)


def print_facts(facts: Iterable[tuple[str, str]]) -> None:
    """Print a line for each name and text, the texts below each other."""
    rows = list(facts)
    width = max((len(name) for name, _ in rows), default=0) + 2
    for name, text in rows:
        typer.echo(f"{name:<{width}}{printable(text)}")


def working(text: str) -> Status:
    """Show what the block does; on a terminal only, and gone when it ends."""
    return Console(stderr=True).status(text)


END_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""Ctrl-C, ``local down`` and the end of a session, a terminal that is closed."""


@contextmanager
def ended_by_signal() -> Iterator[None]:
    """The first signal ends the block as Ctrl-C does; further ones do not disturb its end."""

    def end(_number: int, _frame: Any) -> None:  # noqa: ANN401
        for number in END_SIGNALS:
            signal.signal(number, signal.SIG_IGN)
        raise KeyboardInterrupt

    before = {number: signal.signal(number, end) for number in END_SIGNALS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
