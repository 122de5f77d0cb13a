"""What the repairs of a sweep share: time, counts, and isolated errors of single items."""

import threading
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from itertools import takewhile
from typing import Any, TypeVar

from lake.errors import InvalidInputError
from lake.layout import sweep_key
from router.services import Services, read_document, write_document
from router.telemetry import logger

T = TypeVar("T")

MAX_ITEMS = 100
"""Maximum number of items that the answer of a dry run names."""


@dataclass(slots=True)
class Repair:
    """What repairs use, and what they report."""

    services: Services
    stop_at: datetime
    """Time after which no item of the current repair is begun; the next sweep continues. Aware, UTC."""
    counts: Counter[str] = field(default_factory=Counter)
    errors: list[Exception] = field(default_factory=list)
    """Errors of single items. After all repairs the sweep raises the first one, so that an alarm is raised."""

    dry_run: bool = False
    """Whether to count what would be repaired, and change nothing."""
    items: list[str] = field(default_factory=list)
    """The first items of a dry run, each with its kind of repair."""
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def only_counts(self, kind: str, item: str) -> bool:
        """Whether this is a dry run; if so, counts the item instead of repairing it."""
        if self.dry_run:
            self.count(kind)
            if len(self.items) < MAX_ITEMS:
                self.items.append(f"{kind}: {item}")
        return self.dry_run

    def count(self, kind: str) -> None:
        """Count one item. Thread-safe."""
        with self._lock:
            self.counts[kind] += 1

    @property
    def expired(self) -> bool:
        return self.services.clock() >= self.stop_at

    def in_time(self, items: Iterable[T]) -> Iterator[T]:
        """The items until the time of the current repair is over."""
        return takewhile(lambda _: not self.expired, items)

    @contextmanager
    def isolated(self, item: str, **context: object) -> Iterator[None]:
        """Log any error of the block with ``context``, and end only the work on ``item``."""
        try:
            yield
        except Exception as error:
            logger.exception("a repair failed: the next sweep retries it", extra={"item": item, **context})
            self.errors.append(error)

    def report(self, error: Exception) -> None:
        """Report the error of a skipped item."""
        with self.isolated("skipped"):
            raise error

    def read_position(self, listing: str) -> dict[str, Any]:
        """The position that the last sweep saved; empty for the beginning.

        Each listing has a document of its own, so that saving a position never overwrites another one. Losing a
        position only repeats work, unless the sweep was off for longer than ``LISTING_DAYS``.
        """
        try:
            return read_document(self.services, sweep_key(listing))
        except InvalidInputError:
            return {}

    def save_position(self, listing: str, position: dict[str, Any]) -> None:
        """Save a position, after each page: a sweep that is killed loses one page of its work. A dry run saves none."""
        if not self.dry_run:
            write_document(self.services, sweep_key(listing), position)
