"""An invocation's files of one hour, for the batch lane, become a part of the hour's collection."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from lake.collection_documents import new_part, write_part
from lake.errors import TransientError
from lake.ledger import CollectionId, Part
from lake.partition import Partition
from lake.time import iso_utc
from router.ownership.outcome import UNANSWERED
from router.telemetry import logger

if TYPE_CHECKING:
    from lake.manifest import ObjectVersion
    from router.ownership.record import RecordedDraft
    from router.services import Services

MAX_TRIES = 20
"""Collections that may be closed concurrently, before the part is left to its intent."""


def collect_part(services: Services, recorded: RecordedDraft, now: datetime) -> Part | None:
    """The part, once it is in a collection; None when a write has no answer or another process has abandoned it."""
    files: dict[str, list[ObjectVersion]] = {}
    owned = set(recorded.files)
    for arrival in recorded.draft.arrivals:
        if arrival.file in owned:
            files.setdefault(arrival.partition.dataset, []).append(arrival.file)
    part, body = new_part(recorded.draft.id, recorded.draft.partition.stamp, iso_utc(now), files)
    try:
        write_part(services.s3, services.resources.control_bucket, part, body)
        for dataset in part.datasets:
            services.ledger.datasets.register(dataset)
        collection = _add(services, part, now)
    except UNANSWERED as error:
        logger.warning("part not collected", part=part.id, error=str(error))
        return None
    logger.info("part collected", part=part.id, collection=str(collection), files=part.files, bytes=part.bytes)
    return part


def _add(services: Services, part: Part, now: datetime) -> CollectionId:
    """Add a part to the newest collection of its hour, or to a new one.

    Once one was closed after its hour, readers may be told that hours of its datasets are complete: they are touched
    before the part is there, so that no look misses it.
    """
    ledger = services.ledger
    for _ in range(MAX_TRIES):
        rows = ledger.collections.of_hour(part.hour)
        collection = rows[-1].id if rows else CollectionId.numbered(part.hour, 1)
        if rows and rows[-1].closed_at is None and rows[-1].is_full:
            ledger.collections.close(collection, now, final=any(row.final for row in rows))
        if rows and (rows[-1].closed_at is not None or rows[-1].is_full):
            collection = collection.next()
        if any(row.final for row in rows):
            for dataset in part.datasets:
                ledger.partitions.touch(Partition.parse(f"{dataset}#{part.hour}"), now)
        if ledger.collections.add(collection, part, now):
            return collection
    raise TransientError(f"{MAX_TRIES} collections of {part.hour} were closed concurrently: the sweep adds the part")
