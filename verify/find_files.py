"""The files of some hours: a listing of the input bucket, page by page against the ledger's arrival rows."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from lake.errors import InvalidDocumentError
from lake.ledger import ManifestRow, State
from lake.manifest import ObjectVersion
from lake.partition import Partition
from lake.successors import files_by_successor
from verify.file_index import FileIndex
from verify.report import MAX_DIFFERENCES, Difference, HourReport
from verify.stack import HOUR_FORMAT, Hours, Stack

PARALLEL_READS = 8
"""Threads: boto3 keeps 10 connections."""
WINDOW = timedelta(days=1)
"""A multipart upload is modified when it starts and arrives when it ends: an earlier one may be of these hours."""


@dataclass(slots=True)
class FirstFiles:
    """A number of object versions, and the first of them with what the ledger says of it."""

    number: int = 0
    first: list[tuple[ObjectVersion, str]] = field(default_factory=list)
    """At most ``MAX_DIFFERENCES`` of them."""

    def add(self, file: ObjectVersion, reason: str = "") -> None:
        """Count one, and keep it unless there are many already."""
        self.number += 1
        if len(self.first) < MAX_DIFFERENCES:
            self.first.append((file, reason))


@dataclass(slots=True)
class UnownedFiles:
    """Object versions of an hour that no manifest has."""

    unknown: FirstFiles = field(default_factory=FirstFiles)
    """The ledger has no row of them."""
    ignored: FirstFiles = field(default_factory=FirstFiles)
    """IGNORED when they arrived, and the settings' rules give them to the dataset today; with the reason of then."""


def find_files(stack: Stack, hours: Hours, index: FileIndex) -> dict[str, UnownedFiles]:
    """List the dataset's prefixes, every version; the files that have a manifest are added to ``index``.

    Memory holds one page of the listing.

    Returns
    -------
    The others, by hour.
    """
    unowned: dict[str, UnownedFiles] = {}
    with ThreadPoolExecutor(PARALLEL_READS) as pool:
        for page in _pages(stack, hours):
            known: dict[tuple[str, str], list[ObjectVersion]] = {}
            for file, row in zip(page, pool.map(stack.ledger.arrivals.get, page), strict=True):
                if row is None or row.manifest is None:
                    partition = Partition.of(hours.dataset, datetime.fromisoformat(file.arrived_at))
                    if hours.contain(partition):
                        found = unowned.setdefault(partition.stamp, UnownedFiles())
                        if row is None:
                            found.unknown.add(file)
                        else:
                            found.ignored.add(file, row.reason)
                elif row.partition is not None and hours.contain(row.partition):
                    known.setdefault((row.partition.stamp, row.manifest), []).append(row.file)
            for (stamp, manifest), files in known.items():
                index.add(stamp, manifest, files)
    return unowned


def current_rows(stack: Stack, index: FileIndex, report: HourReport) -> dict[str, ManifestRow | None]:
    """The rows of the manifests that have the files of the report's hour now; ``index`` says the same afterwards.

    The files of a superseded manifest, and of a part, go to those that have them now; a file that none has is reported.
    Files whose collection is not divided yet are left out: the hour cannot be proven.
    """
    rows: dict[str, ManifestRow | None] = {}
    remaining = index.manifests(report.hour)
    while remaining:
        manifest = remaining.pop()
        row = stack.ledger.manifests.get(manifest)
        if row is None or (row.state != State.SUPERSEDED and row.collection is None):
            rows[manifest] = row
            continue
        try:
            successors = files_by_successor(stack.s3, stack.ledger, stack.resources, row, index.files_of(manifest))
        except InvalidDocumentError as error:
            report.differs(Difference(f"manifest {manifest}", f"is {row.state}, and {error}"))
            continue
        if row.collection is not None and not successors:
            report.cannot_be_proven(f"files wait in the collection {row.collection}: it is not divided yet")
        for successor, files in successors.items():
            index.add(report.hour, successor, files)
            remaining.append(successor)
        index.remove(manifest)
    return rows


def _pages(stack: Stack, hours: Hours) -> Iterator[list[ObjectVersion]]:
    """Versions that may be of these hours."""
    bucket = stack.resources.input_bucket
    first, last = (datetime.strptime(text, HOUR_FORMAT).replace(tzinfo=UTC) for text in (hours.first, hours.last))
    for prefix in stack.prefixes:
        for page in stack.s3.get_paginator("list_object_versions").paginate(Bucket=bucket, Prefix=prefix):
            yield [
                ObjectVersion.of(
                    bucket, item["Key"], item["ETag"], item["Size"], item["LastModified"], item.get("VersionId")
                )
                for item in page.get("Versions", [])
                if stack.belongs(item["Key"]) and first - WINDOW <= item["LastModified"] < last + WINDOW
            ]
