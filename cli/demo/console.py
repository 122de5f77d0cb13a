"""Progress a person can follow: live bars on a terminal, plain lines elsewhere."""

from __future__ import annotations

import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

PLAIN_WIDTH = 160
"""Characters of a line where there is no terminal to ask."""


class DemoConsole:
    """Where the demo talks to."""

    def __init__(self) -> None:
        self.console = Console(highlight=False, soft_wrap=True)
        if not self.console.is_terminal:
            self.console.width = PLAIN_WIDTH
        self._started = time.monotonic()

    def say(self, text: str) -> None:
        """One line."""
        if self.console.is_terminal:
            self.console.print(text)
        else:
            self.console.print(f"[{time.monotonic() - self._started:5.0f}s] {text}", markup=False)

    @contextmanager
    def stage(self, title: str, total: int) -> Iterator[Callable[[int, str], None]]:
        """A stage of ``total`` steps; the yielded function takes how many are done, and a word about it."""
        begun = time.monotonic()
        if not self.console.is_terminal:
            last = [-1]

            def report(done: int, note: str = "") -> None:
                if done != last[0]:
                    last[0] = done
                    self.say(f"{title}: {done}/{total} {note}".rstrip())

            yield report
            return
        columns = (
            SpinnerColumn(finished_text="[green]✓[/]"),
            TextColumn("{task.description:<34}"),
            BarColumn(bar_width=28),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("[dim]{task.fields[note]}[/]"),
        )
        with Progress(*columns, console=self.console) as progress:
            task = progress.add_task(title, total=max(total, 1), note="")

            def move(done: int, note: str = "") -> None:
                progress.update(task, completed=done if total else 1, note=note)

            yield move
            progress.update(task, completed=max(total, 1), note=f"{time.monotonic() - begun:.0f} s")
