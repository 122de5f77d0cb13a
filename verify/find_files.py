"""The files of some hours, by listing the input bucket, and the manifests that the ledger names for them."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from lake.ledger import State
from lake.manifest import ObjectVersion
from lake.partition import Partition
from lake.successors import files_by_successor
from verify.stack import HOUR_FORMAT

if TYPE_CHECKING:
    from collections.abc import Iterator

    from verify.stack import Hours, Stack

PARALLEL_READS = 8
"""Threads: boto3 keeps 10 connections."""
WINDOW = timedelta(days=1)
"""A multipart upload is modified when it starts and arrives when it ends: an earlier one may be of these hours."""


@dataclass(slots=True)
class FoundFiles:
    """The object versions of the input bucket that belong to the hours."""

    by_manifest: dict[str, set[ObjectVersion]] = field(default_factory=dict)
    """Under the id of the manifest that has them now: no superseded one."""
    unknown: list[tuple[str, ObjectVersion]] = field(default_factory=list)
    """Hour and file of those that the ledger does not know."""


def find_files(stack: Stack, hours: Hours) -> FoundFiles:
    """List the dataset's prefixes, every version, and look each one up in the ledger."""
    found = FoundFiles()
    listed = list(_listed(stack, hours))
    stamps = set(hours.stamps())
    with ThreadPoolExecutor(PARALLEL_READS) as pool:
        rows = list(pool.map(stack.ledger.arrivals.get, listed))
    for file, row in zip(listed, rows, strict=True):
        if row is None:
            stamp = Partition.of(hours.dataset, datetime.fromisoformat(file.arrived_at)).stamp
            if stamp in stamps:
                found.unknown.append((stamp, file))
        elif row.manifest is not None and row.partition is not None and _is_in(row.partition, hours, stamps):
            found.by_manifest.setdefault(row.manifest, set()).add(row.file)
    found.by_manifest = _current(stack, found.by_manifest)
    return found


def _is_in(partition: Partition, hours: Hours, stamps: set[str]) -> bool:
    return partition.dataset == hours.dataset and partition.stamp in stamps


def _listed(stack: Stack, hours: Hours) -> Iterator[ObjectVersion]:
    bucket = stack.resources.input_bucket
    first, last = (datetime.strptime(text, HOUR_FORMAT).replace(tzinfo=UTC) for text in (hours.first, hours.last))
    for prefix in stack.prefixes:
        for page in stack.s3.get_paginator("list_object_versions").paginate(Bucket=bucket, Prefix=prefix):
            for item in page.get("Versions", []):
                key, modified = item["Key"], item["LastModified"]
                if stack.belongs(key) and first - WINDOW <= modified < last + WINDOW:
                    version = item.get("VersionId")
                    yield ObjectVersion.of(bucket, key, item["ETag"], item["Size"], modified, version)


def _current(stack: Stack, by_manifest: dict[str, set[ObjectVersion]]) -> dict[str, set[ObjectVersion]]:
    """The same files under the manifests that have superseded the first ones."""
    current: dict[str, set[ObjectVersion]] = {}
    remaining = list(by_manifest.items())
    while remaining:
        manifest, files = remaining.pop()
        row = stack.ledger.manifests.get(manifest)
        if row is not None and row.state == State.SUPERSEDED:
            remaining += files_by_successor(stack.s3, stack.resources, row, files).items()
        else:
            current.setdefault(manifest, set()).update(files)
    return current
