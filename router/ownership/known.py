"""Arrivals that have an owner already, found by reading many rows at a time: what a listing meets most of the time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, TypeVar

from lake.ledger import ArrivalRow, Ledger, State
from lake.ledger.table import batches_of
from router.ownership.outcome import UNANSWERED, ArrivalOutcome, Ownership
from router.telemetry import logger

if TYPE_CHECKING:
    from lake.manifest import ObjectVersion
    from router.ownership.draft import RoutedArrival

K = TypeVar("K")
R = TypeVar("R")


def without_known(
    ledger: Ledger, pool: ThreadPoolExecutor, routed: Iterable[RoutedArrival], ownership: Ownership
) -> list[RoutedArrival]:
    """The arrivals about which something has to be decided or written; the others get the outcome DUPLICATE.

    An arrival stays if it has no row, if it is IGNORED, if its owner does not exist or is ABANDONED, or if a read has
    no answer.
    """
    arrivals = list(routed)
    rows = _read_in_batches(pool, _or_none(ledger.arrivals.get_many), [arrival.file for arrival in arrivals])
    owners = list({row.manifest for row in rows if row is not None and row.manifest is not None})
    found = _read_in_batches(pool, _or_none(ledger.manifests.get_many), owners)
    alive = {row.id for row in found if row is not None and row.state != State.ABANDONED}
    remaining = []
    for arrival, row in zip(arrivals, rows, strict=True):
        if row is not None and row.manifest in alive:
            ownership.set_outcome([arrival.file], ArrivalOutcome.DUPLICATE)
        else:
            remaining.append(arrival)
    return remaining


def read_arrivals(ledger: Ledger, pool: ThreadPoolExecutor, files: Sequence[ObjectVersion]) -> list[ArrivalRow | None]:
    """The rows of different object versions by consistent reads, in their order; None: there is none."""
    return _read_in_batches(pool, ledger.arrivals.get_many, files)


def _read_in_batches(
    pool: ThreadPoolExecutor, read: Callable[[Sequence[K]], list[R | None]], keys: Sequence[K]
) -> list[R | None]:
    return [row for rows in pool.map(read, batches_of(keys)) for row in rows]


def _or_none(read: Callable[[Sequence[K]], list[R | None]]) -> Callable[[Sequence[K]], list[R | None]]:
    def read_or_none(keys: Sequence[K]) -> list[R | None]:
        try:
            return read(keys)
        except UNANSWERED as error:
            logger.warning("rows not read in batches: each arrival is looked up", rows=len(keys), error=str(error))
            return [None] * len(keys)

    return read_or_none
