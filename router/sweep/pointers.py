"""Manifests of the stream lane that wait too long get a new pointer.

The first one may never have been written, or a checkpoint that was lost since had it already.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from lake.layout import pointer_prefix
from lake.ledger import ManifestRow, State
from lake.manifest import Lane
from lake.settings.sweep import POINTER_MINUTES
from router.ownership import write_pointer
from router.stream.runs import ensure_running
from router.telemetry import logger

if TYPE_CHECKING:
    from router.services import Services
    from router.sweep.repair import Repair


def renew_pointers(repair: Repair) -> None:
    """Write one more pointer to each waiting manifest, and make sure that the streaming job of its shard runs.

    A pointer in the inbox may have been read already, so its presence proves nothing. But every pointer in the inbox
    doubles the wait for the next one, so that the inbox stays small while no stream runs. The job is started by every
    sweep that finds a waiting manifest: an account's quota can have room again long before the next pointer is due.
    Counts ``repointed``.
    """
    services = repair.services
    limit = timedelta(minutes=POINTER_MINUTES)
    shards = services.settings.shards
    waiting: set[str] = set()
    for hint in services.ledger.manifests.open(Lane.STREAM, State.QUEUED):
        if repair.expired:
            break
        with repair.isolated("pointer", manifest_id=hint.id):
            row = services.ledger.manifests.get(hint.id)
            if row is None or row.state != State.QUEUED or row.lane != Lane.STREAM:
                continue
            waited = services.clock() - datetime.fromisoformat(row.changed_at)
            if waited < limit:
                continue
            waiting.add(shards.of(row.id))
            if waited < limit * _wait_factor(services, row):
                continue
            if repair.only_counts("repointed", f"manifest {row.id}"):
                continue
            write_pointer(services, row.id, urgent=row.urgent)
            repair.counts["repointed"] += 1
            logger.warning("pointer renewed", manifest_id=row.id, queued_since=row.changed_at)
    for shard in () if repair.dry_run else sorted(waiting):
        with repair.isolated("streaming job", shard=shard):
            ensure_running(services, shard)


def _wait_factor(services: Services, row: ManifestRow) -> int:
    """1 for one pointer in the inbox or none, then twice as much for each further one."""
    shard = services.settings.shards.of(row.id)
    prefix = pointer_prefix(row.id, urgent=row.urgent, shard=shard)
    inbox = services.s3.list_objects_v2(Bucket=services.resources.control_bucket, Prefix=prefix)
    return 1 << max(inbox["KeyCount"] - 1, 0)
