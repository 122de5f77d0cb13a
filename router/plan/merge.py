"""Small manifests of one partition become larger ones, by superseding them."""

from __future__ import annotations

from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from botocore.exceptions import ClientError

from lake.errors import UnusableDocumentError
from lake.ledger import State
from lake.ledger.manifest_row import queued_row
from lake.manifest import Lane, Manifest, new_manifest_id, read_manifest, write_manifest
from lake.time import iso_utc
from router.plan.backlog import queued_successors
from router.services import PARALLEL_REQUESTS
from router.telemetry import logger

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from lake.ledger import ManifestRow
    from lake.partition import Partition
    from lake.settings import BatchSettings
    from router.services import Services

MAX_SOURCES = 90
"""Manifests per supersede: with the successor below DynamoDB's limit of 100 actions per transaction."""
MERGE_REASON = "merged with other manifests of its hour"


def merge(services: Services, rows: Sequence[ManifestRow]) -> list[ManifestRow]:
    """Merge what can be merged; returns the backlog afterwards.

    Every file is in exactly one manifest, before and after, whatever happens in between.
    """
    merged: dict[str, ManifestRow] = {row.id: row for row in rows}
    with ThreadPoolExecutor(PARALLEL_REQUESTS) as pool:
        for group in mergeable_groups(rows, services.settings.batch):
            for row in group:
                del merged[row.id]
            merged.update((row.id, row) for row in _supersede(services, pool, group))
    return list(merged.values())


def mergeable_groups(rows: Iterable[ManifestRow], limits: BatchSettings) -> list[list[ManifestRow]]:
    """Groups of two and more manifests that one manifest can replace, oldest first. Pure."""
    candidates: defaultdict[Partition, list[ManifestRow]] = defaultdict(list)
    for row in sorted(rows, key=lambda row: (row.created_at, row.id)):
        if is_mergeable(row):
            candidates[row.partition].append(row)
    found: list[list[ManifestRow]] = []
    for partition in sorted(candidates):
        group: list[ManifestRow] = []
        for row in candidates[partition]:
            if group and not _fits(group, row, limits):
                found.append(group)
                group = []
            group.append(row)
        found.append(group)
    return [group for group in found if len(group) > 1]


def is_mergeable(row: ManifestRow) -> bool:
    """Whether no run has tried it yet: a manifest with attempts may hold a poison file, which must stay isolated."""
    return row.state == State.QUEUED and row.attempt == 0 and row.published is None and row.exclusions is None


def _fits(group: Sequence[ManifestRow], row: ManifestRow, limits: BatchSettings) -> bool:
    return (
        len(group) < MAX_SOURCES
        and sum(member.bytes for member in group) + row.bytes <= limits.manifest_bytes
        and sum(member.files for member in group) + row.files <= limits.manifest_files
    )


def _supersede(services: Services, pool: ThreadPoolExecutor, group: Sequence[ManifestRow]) -> list[ManifestRow]:
    """The rows that hold the group's files afterwards."""
    successor = _successor(services, pool, group)
    if successor is None:
        return list(group)
    write_manifest(services.s3, services.resources.control_bucket, successor)
    if services.ledger.manifests.supersede(group, [successor], MERGE_REASON, services.clock()):
        logger.info("manifests merged", manifest_id=successor.id, sources=len(group), bytes=successor.bytes)
        return [queued_row(successor)]
    # The index was behind the ledger: a source that has changed drops out, the others are merged by the next plan.
    logger.info("manifests not merged: one has changed", sources=[row.id for row in group])
    return queued_successors(services, group)


def _successor(services: Services, pool: ThreadPoolExecutor, group: Sequence[ManifestRow]) -> Manifest | None:
    now = services.clock()
    try:
        documents = list(pool.map(lambda row: _read(services, row), group))
    except (UnusableDocumentError, ClientError) as error:
        logger.warning("manifests not merged: a document cannot be read", error=str(error))
        return None
    files = tuple(sorted(file for document in documents for file in document.files))
    return Manifest(new_manifest_id(now), Lane.BATCH, group[0].partition, iso_utc(now), files)


def _read(services: Services, row: ManifestRow) -> Manifest:
    resources = services.resources
    return read_manifest(services.s3, resources.control_bucket, row, (resources.input_bucket,))
