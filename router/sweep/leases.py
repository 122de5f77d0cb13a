"""Manifests that no live run holds any more are put back to QUEUED."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lake.ledger import State
from lake.manifest import Lane
from router.job_runs import release_unheld
from router.telemetry import logger

if TYPE_CHECKING:
    from datetime import datetime

    from router.services import Services


def release_leases(services: Services, stop_at: datetime) -> dict[str, int]:
    """Release RUNNING manifests whose lease has expired or whose owner run has ended; counts them as ``released``."""
    released = 0
    for lane in Lane:
        for hint in services.ledger.manifests.open(lane, State.RUNNING):
            if services.clock() >= stop_at:
                return {"released": released}
            row = services.ledger.manifests.get(hint.id)
            if row is not None and row.state == State.RUNNING and release_unheld(services, [row]):
                released += 1
                logger.warning("manifest released", manifest_id=row.id, owner=row.owner, attempt=row.attempt)
    return {"released": released}
