"""The demo's progress: live bars on a terminal, plain lines elsewhere."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

PLAIN_WIDTH = 160
"""Characters per line when the output is not a terminal."""


class DemoConsole:
    """Where the demo prints."""

    def __init__(self) -> None:
        self.console = Console(highlight=False, soft_wrap=True)
        if not self.console.is_terminal:
            self.console.width = PLAIN_WIDTH
        self._started = time.monotonic()

    def log(self, text: str) -> None:
        """Print one line; without a terminal, with the seconds since the start."""
        if self.console.is_terminal:
            self.console.print(text)
        else:
            self.console.print(f"[{time.monotonic() - self._started:5.0f}s] {text}", markup=False)

    @contextmanager
    def stage(self, title: str, total: int) -> Iterator[Callable[[int, str], None]]:
        """A stage of ``total`` steps; the yielded function takes the number of steps done and a short note."""
        stage_started = time.monotonic()
        if not self.console.is_terminal:
            last_done = -1

            def log_progress(done: int, note: str = "") -> None:
                nonlocal last_done
                if done != last_done:
                    last_done = done
                    self.log(f"{title}: {done}/{total} {note}".rstrip())

            yield log_progress
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

            def update_bar(done: int, note: str = "") -> None:
                progress.update(task, completed=done if total else 1, note=note)

            yield update_bar
            progress.update(task, completed=max(total, 1), note=f"{time.monotonic() - stage_started:.0f} s")
