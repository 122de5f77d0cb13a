"""Small manifests of one partition become larger ones, by superseding them: by the sweep, or by the plan."""

from __future__ import annotations

from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import TYPE_CHECKING

from botocore.exceptions import ClientError

from lake.errors import UnusableDocumentError
from lake.ledger import State
from lake.ledger.manifest_row import queued_row
from lake.manifest import Lane, Manifest, new_manifest_id
from lake.manifest_document import read_manifest, write_manifest
from router.merge.successors import queued_successors
from router.merge.write_pace import WritePace
from router.telemetry import logger

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import datetime

    from lake.ledger import ManifestRow
    from lake.manifest import ObjectVersion
    from lake.partition import Partition
    from lake.settings import BatchSettings
    from router.services import Services

MAX_SOURCES = 90
"""Manifests per supersede: with the successor below DynamoDB's limit of 100 actions per transaction."""
SMALL_SHARE = 16
"""A plan merges manifests of at most this part of a manifest's limits, 4 GiB by default.

What a manifest costs its run (claim, commit, publish: about 15 requests, eight manifests side by side) is a fiftieth of
the time in which a run of the default size converts 4 GiB (calculated); merging it would cost what it saves.
"""
PARALLEL_GROUPS = 16
"""Threads; each holds the files of one group, at most ``batch.manifest_files``."""
TIME_TO_MERGE = timedelta(seconds=60)
"""A plan begins no group after it: the manifests that are left are planned as they are. The function has 15 minutes."""
MERGE_REASON = "merged with other manifests of its hour"


def merge(services: Services, rows: Sequence[ManifestRow], pace: WritePace | None = None) -> list[ManifestRow]:
    """Merge what can be merged within ``TIME_TO_MERGE``, groups side by side; returns the backlog afterwards.

    Every file is in exactly one manifest, before and after, whatever happens in between. ``pace`` limits the writes to
    the index's partition key, which all sources and successors have in common.
    """
    merged: dict[str, ManifestRow] = {row.id: row for row in rows}
    groups = mergeable_groups(rows, services.settings.batch)
    supersede = Supersede(services, pace or WritePace(), services.clock() + TIME_TO_MERGE)
    with ThreadPoolExecutor(PARALLEL_GROUPS) as pool:
        for group, holders in zip(groups, pool.map(supersede, groups), strict=True):
            for row in group:
                del merged[row.id]
            merged.update((row.id, row) for row in holders)
    if supersede.left:
        logger.warning("time to merge is over: the rest is planned as it is", groups=len(supersede.left))
    return list(merged.values())


def mergeable_groups(
    rows: Iterable[ManifestRow], limits: BatchSettings, small_share: int = SMALL_SHARE
) -> list[list[ManifestRow]]:
    """Groups of two and more small manifests that one manifest can replace, those with most manifests first. Pure.

    Within a group the oldest is first.
    """
    candidates: defaultdict[Partition, list[ManifestRow]] = defaultdict(list)
    for row in sorted(rows, key=lambda row: (row.created_at, row.id)):
        if is_mergeable(row) and is_small(row, limits, small_share):
            candidates[row.partition].append(row)
    found: list[list[ManifestRow]] = []
    for partition in sorted(candidates):
        group: list[ManifestRow] = []
        size = files = 0
        for row in candidates[partition]:
            fits = size + row.bytes <= limits.manifest_bytes and files + row.files <= limits.manifest_files
            if group and not (fits and len(group) < MAX_SOURCES):
                found.append(group)
                group, size, files = [], 0, 0
            group.append(row)
            size += row.bytes
            files += row.files
        found.append(group)
    return sorted((group for group in found if len(group) > 1), key=len, reverse=True)


def is_mergeable(row: ManifestRow) -> bool:
    """Whether no run has tried it yet: a manifest with attempts may hold a poison file, which must stay isolated."""
    return row.state == State.QUEUED and row.attempt == 0 and row.published is None and row.exclusions is None


def is_small(row: ManifestRow, limits: BatchSettings, share: int) -> bool:
    """Whether it has at most this part of what a manifest may have; one file is always few."""
    return row.bytes <= limits.manifest_bytes // share and row.files <= max(limits.manifest_files // share, 1)


class Supersede:
    """Supersedes a group; gives the rows that hold the group's files afterwards. Thread-safe.

    Parameters
    ----------
    pace
        Of the writes to the index's partition key.
    stop_at
        Groups that come later stay as they are.
    """

    def __init__(self, services: Services, pace: WritePace, stop_at: datetime) -> None:
        self._services, self._pace, self._stop_at = services, pace, stop_at
        self.left: list[str] = []
        """The first manifest of each group that was not begun in time."""
        self.merged: list[str] = []
        """The manifests that took the place of a group."""

    def __call__(self, group: Sequence[ManifestRow]) -> list[ManifestRow]:
        services = self._services
        if services.clock() > self._stop_at:
            self.left.append(group[0].id)
            return list(group)
        successor = _successor(services, group)
        if successor is None:
            return list(group)
        write_manifest(services.s3, services.resources.control_bucket, successor)
        self._pace.take(len(group) + 1)
        if services.ledger.manifests.supersede(group, [successor], MERGE_REASON, services.clock()):
            self.merged.append(successor.id)
            logger.info("manifests merged", manifest_id=successor.id, sources=len(group), bytes=successor.bytes)
            return [queued_row(successor)]
        # The index was behind the ledger: a source that has changed drops out, the others are merged by the next plan.
        logger.info("manifests not merged: one has changed", sources=[row.id for row in group])
        return queued_successors(services, group)


def _successor(services: Services, group: Sequence[ManifestRow]) -> Manifest | None:
    """Read one document after the other: other groups are read at the same time, and memory is bounded.

    It is as old as the oldest source, so that no merge hides how long a file has been waiting.
    """
    now = services.clock()
    files: list[ObjectVersion] = []
    try:
        for row in group:
            files += _read(services, row).files
    except (UnusableDocumentError, ClientError) as error:
        logger.warning("manifests not merged: a document cannot be read", error=str(error))
        return None
    return Manifest(new_manifest_id(now), Lane.BATCH, group[0].partition, group[0].created_at, tuple(sorted(files)))


def _read(services: Services, row: ManifestRow) -> Manifest:
    resources = services.resources
    return read_manifest(services.s3, resources.control_bucket, row, resources.file_buckets)
