"""Manifests without progress: reported, because only a person can find out why no run converts them."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from lake.ledger.manifest_row import OPEN_STATES
from lake.manifest import Lane
from lake.settings.sweep import STALLED
from router.telemetry import logger

if TYPE_CHECKING:
    from router.sweep.repair import Repair


def report_stalled(repair: Repair) -> None:
    """Report manifests that are open for longer than ``STALLED``; counts them as ``stalled``.

    The age of a reprocessed manifest counts from its last reprocess.
    """
    services = repair.services
    for lane in Lane:
        for state in OPEN_STATES:
            for row in services.ledger.manifests.open(lane, state):
                # Oldest first: the rest of this state is younger.
                if repair.expired or services.clock() - datetime.fromisoformat(row.created_at) < STALLED:
                    break
                if row.forced_at and services.clock() - datetime.fromisoformat(row.forced_at) < STALLED:
                    continue
                repair.counts["stalled"] += 1
                logger.warning(
                    "manifest without progress",
                    manifest_id=row.id,
                    state=state,
                    lane=lane,
                    created_at=row.created_at,
                    attempt=row.attempt,
                    reason=row.reason,
                )
