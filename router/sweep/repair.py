"""One repair of a sweep: its time, its counts, and the errors of single items, which end neither it nor the others."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from itertools import zip_longest
from typing import Any

from lake.errors import HybridRouterError, InvalidInputError, TerminalError, TransientError
from lake.layout import sweep_key
from lake.texts import format_count, printable
from router.entry import to_product_error
from router.services import Services, read_document, write_document
from router.telemetry import logger

MAX_ITEMS = 100
"""Maximum number of items that the answer of a dry run names."""


@dataclass(slots=True)
class Repair:
    """What a repair may use, and what it reports."""

    services: Services
    stop_at: datetime
    """No item is begun after it: the next sweep continues. Aware, UTC."""
    counts: Counter[str] = field(default_factory=Counter)
    """What was repaired, by kind."""
    failed: list[FailedItem] = field(default_factory=list)
    """Single items with their errors. The sweep raises them after all repairs, so that an alarm is raised."""

    dry_run: bool = False
    """Count what would be repaired, and change nothing."""
    items: list[str] = field(default_factory=list)
    """Of a dry run: the first items, each with the kind of its repair."""
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def only_counts(self, kind: str, item: str) -> bool:
        """Whether this is a dry run, which counts the item in place of repairing it."""
        if self.dry_run:
            self.count(kind)
            if len(self.items) < MAX_ITEMS:
                self.items.append(f"{kind}: {item}")
        return self.dry_run

    def count(self, kind: str) -> None:
        """Count one item; thread-safe."""
        with self._lock:
            self.counts[kind] += 1

    @property
    def expired(self) -> bool:
        return self.services.clock() >= self.stop_at

    @contextmanager
    def isolated(self, item: str, **context: object) -> Iterator[None]:
        """Inside this block an error, whatever it is, is logged with ``context`` and ends the work on ``item`` only."""
        try:
            yield
        except Exception as error:
            logger.exception("a repair failed: the next sweep tries it again", extra={"item": item, **context})
            self.failed.append(FailedItem(" ".join([item, *map(str, context.values())]), error))


MAX_NAMED = 5
"""Maximum number of items in the message; the log of the sweep names all of them."""


@dataclass(frozen=True, slots=True)
class FailedItem:
    """An item of a repair, or a whole repair, with its error."""

    item: str
    error: Exception

    def __str__(self) -> str:
        kind = "" if isinstance(self.error, HybridRouterError) else f"{type(self.error).__name__}: "
        return printable(f"{self.item}: {kind}{self.error}")

    @property
    def passes(self) -> bool:
        """Whether a repetition can succeed."""
        error = self.error if isinstance(self.error, HybridRouterError) else to_product_error(self.error)
        return isinstance(error, TransientError)


def error_of_sweep(repairs: Sequence[Sequence[FailedItem]]) -> Exception:
    """The error to raise for what each repair has failed at, at least one item in all.

    It is the error of the item if there is only one. Else it names the first ``MAX_NAMED`` items, the first one of each
    repair before the second one of any: a hundred manifests with the same cause hide no other cause. It is transient if
    all of them are.
    """
    failed = [item for row in zip_longest(*repairs) for item in row if item is not None]
    if len(failed) == 1:
        return failed[0].error
    named, more = failed[:MAX_NAMED], len(failed) - MAX_NAMED
    text = (
        f"{format_count(len(failed), 'repair')} failed, and the next sweep tries them again: "
        f"{'; '.join(str(item) for item in named)}{f'; the log names {more:,} more' if more > 0 else ''}"
    )
    error = TransientError(text) if all(item.passes for item in failed) else TerminalError(text)
    error.__cause__ = failed[0].error
    return error


def read_progress(services: Services, listing: str) -> dict[str, Any]:
    """The position that the last sweep has kept; empty: the beginning.

    Each listing has a document of its own, so that saving one position never overwrites another. Losing one only
    repeats work, unless the sweep was off for longer than ``LISTING_DAYS``.
    """
    try:
        return read_document(services, sweep_key(listing))
    except InvalidInputError:
        return {}


def write_progress(services: Services, listing: str, position: dict[str, Any]) -> None:
    """Keep a position after each page: a sweep that is killed loses one page of its work."""
    write_document(services, sweep_key(listing), position)
