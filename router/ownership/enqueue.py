"""A recorded draft becomes a manifest of the stream lane: document, place in the list of its hour, row, pointer."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from lake.errors import OwnershipError
from lake.ledger import State
from lake.manifest_document import write_manifest
from lake.time import iso_utc
from router.ownership.outcome import UNANSWERED
from router.ownership.pointer import write_pointer
from router.telemetry import logger

if TYPE_CHECKING:
    from lake.manifest import Manifest
    from router.ownership.record import RecordedDraft
    from router.services import Services


def enqueue_manifest(services: Services, recorded: RecordedDraft, now: datetime) -> Manifest | None:
    """The QUEUED manifest; None when one of its writes has no answer or another process has abandoned it."""
    manifest = recorded.draft.manifest(iso_utc(now), recorded.files)
    ledger, bucket = services.ledger, services.resources.control_bucket
    try:
        write_manifest(services.s3, bucket, manifest)
        ledger.datasets.register(manifest.partition.dataset)
        ledger.partitions.list_manifest(manifest.partition, manifest.id, now)
        if ledger.manifests.enqueue(manifest) == State.ABANDONED:
            raise OwnershipError(f"manifest {manifest.id} was presumed dead and abandoned: its events are redelivered")
        write_pointer(services, manifest.id, urgent=manifest.urgent)
    except UNANSWERED as error:
        logger.warning("manifest not enqueued", manifest_id=manifest.id, error=str(error))
        return None
    logger.info(
        "manifest enqueued",
        manifest_id=manifest.id,
        partition=str(manifest.partition),
        files=len(manifest.files),
        bytes=manifest.bytes,
    )
    return manifest
