"""Output of a command on the terminal: tables that fit its width, and progress; and signals that end it."""

import shutil
import signal
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import typer
from rich.cells import cell_len
from rich.console import Console
from rich.status import Status

from lake.texts import format_size, printable

GAP = "  "


def print_table(title: str, names: Sequence[str], numbers: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print rows below their headers: first the text columns, then the columns of ``numbers``, aligned right."""
    width = shutil.get_terminal_size().columns if sys.stdout and sys.stdout.isatty() else None
    typer.echo(format_table(title, names, numbers, rows, width))


def format_table(
    title: str, names: Sequence[str], numbers: Sequence[str], rows: Iterable[Sequence[str]], width: int | None
) -> str:
    """Return the lines of a table for a terminal of ``width`` characters; None: for a program, with tabs.

    While the columns do not fit, the widest one is moved out of the rows: its cells follow below, each on its own line.
    The first column, which identifies the row, stays unless it takes half of the width.
    """
    heads = [*names, *numbers]
    cells = [list(row) for row in rows]
    if width is None:
        lines = ["\t".join(text.replace("\t", " ") for text in line) for line in (heads, *cells)]
        return "\n".join([title, *lines] if title else lines)
    widths = [max(map(cell_len, column)) for column in zip(heads, *cells, strict=True)]
    beside = list(range(len(heads)))
    while sum(widths[place] + len(GAP) for place in beside) - len(GAP) > width and beside[1:]:
        beside.remove(max(beside, key=lambda place: (place > 0 or widths[0] > width // 2, widths[place])))

    def line(row: Sequence[str]) -> str:
        spaces = {place: " " * (widths[place] - cell_len(row[place])) for place in beside}
        return GAP.join(row[at] + spaces[at] if at < len(names) else spaces[at] + row[at] for at in beside).rstrip()

    lines = [typer.style(text, bold=True) for text in (title, line(heads)) if text]
    for row in cells:
        below = (f"{GAP}{heads[at]}: {text}" for at, text in enumerate(row) if text and at not in beside)
        lines += [line(row), *below]
    return "\n".join(lines)


def cells(item: object, *names: str) -> list[str]:
    """Format these members of an item for a table: ``bytes`` as a size, other numbers with commas, None as a hyphen."""
    values = ((name, getattr(item, name)) for name in names)
    return ["-" if value is None else format_size(value) if name == "bytes" else f"{value:,}" for name, value in values]


def print_facts(facts: Iterable[tuple[str, str]]) -> None:
    rows = list(facts)
    width = max((len(name) for name, _ in rows), default=0) + 2
    for name, text in rows:
        typer.echo(f"{name:<{width}}{printable(text)}")


def print_progress(text: str) -> None:
    typer.echo(text, err=True)


def working(text: str) -> Status:
    """Show what the block does until it ends; only on a terminal."""
    return Console(stderr=True).status(text)


END_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""Signals of Ctrl-C, of ``local down``, and of a closed terminal."""


@contextmanager
def ended_by_signal() -> Iterator[None]:
    """The first signal ends the block as Ctrl-C does; further signals do not disturb its end.

    An ignored signal stays ignored: under nohup a closed terminal ends nothing.
    """

    def end(_number: int, _frame: Any) -> None:  # noqa: ANN401
        for number in END_SIGNALS:
            signal.signal(number, signal.SIG_IGN)
        raise KeyboardInterrupt

    handled = [number for number in END_SIGNALS if signal.getsignal(number) != signal.SIG_IGN]
    before = {number: signal.signal(number, end) for number in handled}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
