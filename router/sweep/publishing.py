"""Publishes whose process crashed are rolled forward from their commit documents."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from lake.errors import NewerDocumentError
from lake.ledger import State
from lake.manifest import Lane
from lake.publish import roll_forward
from router.telemetry import logger

if TYPE_CHECKING:
    from router.services import Services


def finish_publishing(services: Services, stop_at: datetime) -> dict[str, int]:
    """Finish publishes that take longer than ``sweep.publishing_minutes``.

    Counts ``rolledForward`` manifests, which are DONE, and ``vanished`` ones, FAILED because their uploads are gone.
    """
    limit = timedelta(minutes=services.settings.sweep.publishing_minutes)
    counts = {"rolledForward": 0, "vanished": 0}
    for lane in Lane:
        for hint in services.ledger.manifests.open(lane, State.PUBLISHING):
            if services.clock() >= stop_at:
                return counts
            row = services.ledger.manifests.get(hint.id)
            if row is None or row.state != State.PUBLISHING:
                continue
            if services.clock() - datetime.fromisoformat(row.changed_at) < limit:
                continue
            resources = services.resources
            control, buckets = resources.control_bucket, resources.output_buckets
            try:
                state = roll_forward(services.s3, services.ledger, control, row, services.clock, buckets)
            except NewerDocumentError as error:
                logger.warning("publish left to a newer version", manifest_id=row.id, reason=str(error))
                continue
            counts["rolledForward"] += state == State.DONE
            counts["vanished"] += state == State.FAILED
            logger.warning("publish rolled forward", manifest_id=row.id, state=state, publishing_since=row.changed_at)
    return counts
