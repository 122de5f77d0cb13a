"""Arrivals that have an owner already, found by reading: what a listing meets most of the time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lake.ledger import State
from router.ownership.outcome import UNANSWERED, ArrivalOutcome
from router.ownership.returned import was_put_again

if TYPE_CHECKING:
    from collections.abc import Iterable
    from concurrent.futures import ThreadPoolExecutor

    from lake.ledger import ArrivalRow, Ledger
    from router.ownership.draft import RoutedArrival
    from router.ownership.outcome import Ownership


def without_known(
    ledger: Ledger, pool: ThreadPoolExecutor, routed: Iterable[RoutedArrival], ownership: Ownership
) -> list[RoutedArrival]:
    """The arrivals about which something has to be decided or written; the others get the outcome DUPLICATE.

    An arrival stays if it has no row, if it is IGNORED, if its owner does not exist or is ABANDONED, if it was put
    again, or if a read has no answer.
    """
    arrivals = list(routed)
    rows = list(pool.map(lambda arrival: _row(ledger, arrival), arrivals))
    owners = list({row.manifest for row in rows if row is not None and row.manifest is not None})
    alive = dict(zip(owners, pool.map(lambda owner: _is_alive(ledger, owner), owners), strict=True))
    remaining = []
    for arrival, row in zip(arrivals, rows, strict=True):
        if row is not None and alive.get(row.manifest or "") and not was_put_again(arrival, row):
            ownership.set_outcome([arrival.file], ArrivalOutcome.DUPLICATE)
        else:
            remaining.append(arrival)
    return remaining


def _row(ledger: Ledger, arrival: RoutedArrival) -> ArrivalRow | None:
    try:
        return ledger.arrivals.get(arrival.file)
    except UNANSWERED:
        # The write that follows has the same fault, and decides.
        return None


def _is_alive(ledger: Ledger, owner: str) -> bool:
    try:
        row = ledger.manifests.get(owner)
    except UNANSWERED:
        return False
    return row is not None and row.state != State.ABANDONED
