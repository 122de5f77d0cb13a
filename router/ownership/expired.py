"""Arrivals so old that their rows may have expired (``ledger.keep_days``): without a row, their owner is not known."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from typing import TYPE_CHECKING

from router.ownership.outcome import UNANSWERED
from router.telemetry import logger

if TYPE_CHECKING:
    from lake.ledger import ArrivalRow
    from lake.manifest import ObjectVersion
    from router.ownership.draft import RoutedArrival
    from router.services import Services


def divide_by_expiry(
    services: Services, pool: ThreadPoolExecutor, routed: Sequence[RoutedArrival], now: datetime
) -> tuple[list[RoutedArrival], list[ArrivalRow], list[ObjectVersion]]:
    """Divide arrivals: those that may be new; the rows of older ones; the older ones that have no row.

    An older one is never recorded as new: its row may have been deleted after it was converted, and it would be
    converted twice.
    """
    oldest = services.settings.ledger.oldest_arrival(now)
    if oldest is None:
        return list(routed), [], []
    recent = [arrival for arrival in routed if not _is_before(arrival.file, oldest)]
    old = [arrival.file for arrival in routed if _is_before(arrival.file, oldest)]
    try:
        rows = list(pool.map(services.ledger.arrivals.get, old))
    except UNANSWERED as error:
        logger.warning("no answer about old arrivals", files=len(old), error=str(error))
        return recent, [], old
    forgotten = [file for file, row in zip(old, rows, strict=True) if row is None]
    if forgotten:
        logger.error(
            "files without a row are older than ledger.keep_days: they may have been converted, so they are not taken; "
            "look for them in the lake, and put a file that is missing there into the input again",
            files=len(forgotten),
            first=forgotten[0].uri,
        )
    return recent, [row for row in rows if row is not None], forgotten


def recent_only(
    services: Services, ignored: Mapping[ObjectVersion, str], now: datetime
) -> tuple[dict[ObjectVersion, str], list[ObjectVersion]]:
    """Divide ignored files: those to record, with their reason; those so old that no row is written for them.

    A row that says IGNORED would let a later rule adopt a file that was converted before its own row expired.
    """
    oldest = services.settings.ledger.oldest_arrival(now)
    if oldest is None:
        return dict(ignored), []
    old = [file for file in ignored if _is_before(file, oldest)]
    return {file: reason for file, reason in ignored.items() if file not in set(old)}, old


def _is_before(file: ObjectVersion, oldest: datetime) -> bool:
    return datetime.fromisoformat(file.arrived_at) < oldest
