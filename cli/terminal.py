"""What a command shows on the terminal: tables that fit its width, and progress; and how it is ended from outside."""

from __future__ import annotations

import shutil
import signal
import sys
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from threading import Timer
from typing import Any, NamedTuple

import typer
from rich.cells import cell_len
from rich.console import Console

from lake.texts import printable

GAP = "  "


class _Column(NamedTuple):
    """A column with its cells."""

    name: str
    cells: list[str]
    is_number: bool

    @property
    def heads(self) -> list[str]:
        """The name, a word in each line."""
        return self.name.split() or [""]

    @property
    def has_uris(self) -> bool:
        """Whether a cell is a URI."""
        return any(map(_is_uri, self.cells))

    def width(self, *, wrapped: bool) -> int:
        heads = self.heads if wrapped else [self.name]
        return max(map(cell_len, (*heads, *self.cells)))


def print_table(title: str, names: Sequence[str], numbers: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print rows below their headers: first columns of text, then those of ``numbers``, which are aligned right."""
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
    typer.echo(format_table(title, names, numbers, rows, width))


def format_table(
    title: str, names: Sequence[str], numbers: Sequence[str], rows: Iterable[Sequence[str]], width: int | None
) -> str:
    """The lines of a table for a terminal of ``width`` characters; None: for a program, with tabs.

    Where the columns do not fit side by side, headers are wrapped; then the widest columns of text go above the rest
    of their row, where a URI has a line of its own and stays whole. Numbers that do not fit are one below the other.
    """
    cells = [list(row) for row in rows]
    heads = [*names, *numbers]
    if width is None:
        lines = ["\t".join(text.replace("\t", " ") for text in line) for line in (heads, *cells)]
        return "\n".join([title, *lines] if title else lines)
    columns = [_Column(name, [row[place] for row in cells], place >= len(names)) for place, name in enumerate(heads)]
    top = [typer.style(title, bold=True)] if title else []
    above: list[_Column] = []
    beside = columns
    while not _fits(beside, width, is_indented=bool(above)):
        texts = [column for column in beside if not column.is_number]
        if not texts:
            return "\n".join(top + _format_records(columns, len(cells), width))
        widest = max(texts, key=lambda column: (column.has_uris, column.width(wrapped=True)))
        above = [column for column in columns if column in above or column is widest]
        beside = [column for column in beside if column is not widest]
    return "\n".join(top + _format_rows(above, beside, len(cells), width))


def _fits(columns: Sequence[_Column], width: int, *, is_indented: bool) -> bool:
    needed = sum(column.width(wrapped=True) for column in columns) + len(GAP) * (len(columns) - 1)
    return needed + (len(GAP) if is_indented else 0) <= width


def _format_rows(above: Sequence[_Column], beside: Sequence[_Column], number: int, width: int) -> list[str]:
    margin = GAP if above else ""
    is_wrapped = sum(column.width(wrapped=False) + len(GAP) for column in beside) - len(GAP) + len(margin) > width
    widths = [column.width(wrapped=is_wrapped) for column in beside]
    heads = [column.heads if is_wrapped else [column.name] for column in beside]
    height = max(map(len, heads), default=0)
    head_lines = [[*[""] * (height - len(words)), *words] for words in heads]
    lines = [typer.style(text, bold=True) for text in _pack([column.name for column in above], width)]
    for place in range(height):
        texts = [words[place] for words in head_lines]
        lines.append(typer.style(margin + _format_line(beside, texts, widths), bold=True))
    for place in range(number):
        lines += _pack([column.cells[place] for column in above], width)
        if beside:
            lines.append(margin + _format_line(beside, [column.cells[place] for column in beside], widths))
    return lines


def _format_line(columns: Sequence[_Column], texts: Sequence[str], widths: Sequence[int]) -> str:
    padded = []
    for column, text, width in zip(columns, texts, widths, strict=True):
        space = " " * (width - cell_len(text))
        padded.append(space + text if column.is_number else text + space)
    return GAP.join(padded).rstrip()


def _format_records(columns: Sequence[_Column], number: int, width: int) -> list[str]:
    """Name and value of every cell, in a line each; an empty line between two rows."""
    name_width = max(cell_len(column.name) for column in columns) + len(GAP)
    lines: list[str] = []
    for place in range(number):
        lines += [""] if place else []
        for column in columns:
            first, *rest = _wrap(column.cells[place], width - name_width) or [""]
            lines.append(f"{column.name:<{name_width}}{first}".rstrip())
            lines += [" " * name_width + text for text in rest]
    return lines


def _pack(texts: Sequence[str], width: int) -> list[str]:
    """Texts one after the other as far as they fit in a line; a URI is in a line of its own."""
    lines: list[str] = []
    is_open = False
    for text in texts:
        if is_open and not _is_uri(text) and cell_len(lines[-1]) + len(GAP) + cell_len(text) <= width:
            lines[-1] += GAP + text
        else:
            lines += (wrapped := _wrap(text, width))
            is_open = bool(wrapped) and not _is_uri(text)
    return lines


def _wrap(text: str, width: int) -> list[str]:
    """A sentence is wrapped at its words; a URI stays whole, so that it can be copied."""
    if _is_uri(text) or cell_len(text) <= width:
        return [text] if text else []
    return textwrap.wrap(text, width, break_long_words=False, break_on_hyphens=False)


def _is_uri(text: str) -> bool:
    return "://" in text.split(" ", 1)[0]


def print_facts(facts: Iterable[tuple[str, str]]) -> None:
    """Print a line for each name and text, the texts below each other."""
    rows = list(facts)
    width = max((len(name) for name, _ in rows), default=0) + 2
    for name, text in rows:
        typer.echo(f"{name:<{width}}{printable(text)}")


SHOWN_AFTER_SECONDS = 1.0


@contextmanager
def shown_when_slow(text: str) -> Iterator[None]:
    """Show what the block does once it has taken a second; on a terminal only, and gone when it ends."""
    status = Console(stderr=True).status(text)
    timer = Timer(SHOWN_AFTER_SECONDS, status.start)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()
        status.stop()


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
