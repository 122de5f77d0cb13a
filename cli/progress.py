"""Progress of a command on stderr, where a person looks at it and it takes longer than a second."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Timer

from rich.console import Console

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
