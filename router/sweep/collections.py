"""Collections whose hour is over become manifests, and those that a crashed process has left closed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lake.errors import NewerDocumentError
from router.collect.divide import MAX_INDEX_WRITES_PER_SECOND, WritePace, divide, is_over
from router.telemetry import logger

if TYPE_CHECKING:
    from router.sweep.repair import Repair

WRITES_PER_SECOND = MAX_INDEX_WRITES_PER_SECOND // 2
"""A plan may divide at the same time."""


def divide_collections(repair: Repair) -> None:
    """Divide them, the oldest hours first; counts them as ``divided``."""
    services = repair.services
    pace = WritePace(WRITES_PER_SECOND)
    for row in services.ledger.collections.open():
        if repair.expired:
            return
        if row.closed_at is None and not is_over(row.id.hour, services.clock()):
            continue
        if repair.only_counts("divided", f"collection {row.id}"):
            continue
        with repair.isolated("collection", collection=str(row.id)):
            try:
                divide(services, row.id, pace)
            except NewerDocumentError as error:
                logger.warning("collection left to a newer version", collection=str(row.id), reason=str(error))
                continue
            repair.count("divided")
