"""Manifests that no live run holds any more are put back to QUEUED."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lake.ledger import State
from lake.manifest import Lane
from router.executions.holders import reason_to_release, release_unheld
from router.telemetry import logger

if TYPE_CHECKING:
    from router.sweep.repair import Repair


def release_leases(repair: Repair) -> None:
    """Release RUNNING manifests whose lease has expired or whose owner run has ended; counts them as ``released``."""
    services = repair.services
    for lane in Lane:
        for hint in services.ledger.manifests.open(lane, State.RUNNING):
            if repair.expired:
                return
            with repair.isolated("lease", manifest_id=hint.id):
                row = services.ledger.manifests.get(hint.id)
                if row is None or row.state != State.RUNNING:
                    continue
                if repair.dry_run:
                    if (reason := reason_to_release(services, row, {})) is not None:
                        repair.only_counts("released", f"manifest {row.id}: {reason}")
                elif release_unheld(services, [row]):
                    repair.counts["released"] += 1
                    logger.warning("manifest released", manifest_id=row.id, owner=row.owner, attempt=row.attempt)
