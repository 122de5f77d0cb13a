"""Publishes whose process crashed are rolled forward from their commit documents."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from lake.errors import NewerDocumentError
from lake.ledger import State
from lake.manifest import Lane
from lake.publish import roll_forward
from lake.settings.sweep import PUBLISHING_MINUTES
from router.telemetry import logger

if TYPE_CHECKING:
    from router.sweep.repair import Repair


def finish_publishing(repair: Repair) -> None:
    """Finish publishes that take longer than ``PUBLISHING_MINUTES``.

    Counts ``rolledForward`` manifests, which are DONE, and ``vanished`` ones, FAILED because their uploads are gone.
    """
    for lane in Lane:
        for hint in repair.services.ledger.manifests.open(lane, State.PUBLISHING):
            if repair.expired:
                return
            with repair.isolated("publish", manifest_id=hint.id):
                _finish(repair, hint.id)


def _finish(repair: Repair, manifest: str) -> None:
    services = repair.services
    limit = timedelta(minutes=PUBLISHING_MINUTES)
    row = services.ledger.manifests.get(manifest)
    if row is None or row.state != State.PUBLISHING:
        return
    if services.clock() - datetime.fromisoformat(row.changed_at) < limit:
        return
    if repair.only_counts("rolledForward", f"manifest {row.id}"):
        return
    control, buckets = services.resources.control_bucket, services.resources.output_buckets
    has_table = services.settings.has_table(row.partition.dataset)
    try:
        state = roll_forward(services.s3, services.ledger, control, row, services.clock, buckets, has_table=has_table)
    except NewerDocumentError as error:
        logger.warning("publish left to a newer version", manifest_id=row.id, reason=str(error))
        return
    repair.counts["rolledForward"] += state == State.DONE
    repair.counts["vanished"] += state == State.FAILED
    logger.warning("publish rolled forward", manifest_id=row.id, state=state, publishing_since=row.changed_at)
