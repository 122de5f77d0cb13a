"""Tables on the terminal."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import typer
from rich.console import Console
from rich.table import Table

from lake.printable import printable

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

PIPED_COLUMNS = 200
"""Width where no terminal tells its own: nothing is wrapped."""


def print_table(title: str, names: Sequence[str], numbers: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print rows below their headers: first columns of text, then those of ``numbers``, which are aligned right."""
    table = Table(title=title, title_justify="left", header_style="bold")
    for name in names:
        table.add_column(name, overflow="fold")
    for name in numbers:
        table.add_column(name, justify="right", no_wrap=True)
    for row in rows:
        table.add_row(*row)
    Console(highlight=False, markup=False, width=None if sys.stdout.isatty() else PIPED_COLUMNS).print(table)


def print_facts(facts: Iterable[tuple[str, str]]) -> None:
    """Print a line for each name and text, the texts below each other."""
    rows = list(facts)
    width = max((len(name) for name, _ in rows), default=0) + 2
    for name, text in rows:
        typer.echo(f"{name:<{width}}{printable(text)}")
