"""The two loads: A, 338,000 files of 4.5 GB in a day, and B, 2.4 million files of 3.5 MB in 12 hours."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from lake.ledger.arrivals import arrival_key
from lake.ledger.manifest_row import manifest_row_key, queued_attributes, queued_row
from lake.manifest import Lane, Manifest, ObjectVersion
from lake.partition import Partition
from lake.resource_names import ResourceNames

if TYPE_CHECKING:
    from collections.abc import Iterator

START = datetime(2026, 11, 20, tzinfo=UTC)
"""First hour of the files."""
NOW = START + timedelta(days=1, hours=1)
"""Start of the execution, and of the sweep."""
RESOURCES = ResourceNames("input", "lake", "quarantine", "control", "ledger", "stream-job", "batch-job", "catalog")
MAX_LISTED_FILES = 50_000
COLUMNS = 1000
"""Columns of each dataset: the default of ``convert.column_limit``."""


@dataclass(frozen=True, slots=True)
class Night:
    """One load, with a number of datasets between which its files are divided evenly."""

    name: str
    files: int
    file_bytes: int
    hours: int
    files_per_manifest: int
    """In the window of one invocation of ``route`` (20 s, five pollers), of one dataset; A: at most 64 GiB."""
    datasets: int

    @property
    def manifests(self) -> int:
        """Number of manifests that wait for the night."""
        return -(-self.files // self.files_per_manifest)

    def dataset_names(self) -> list[str]:
        """Names of the datasets, sorted."""
        return [f"dataset_{number:02}" for number in range(self.datasets)]

    def manifest(self, number: int) -> Manifest:
        """The manifest of this number, from 0; always the same."""
        at = START + timedelta(hours=self.hours) * number / self.manifests
        partition = Partition.of(self.dataset_names()[number % self.datasets], at)
        random = hashlib.sha256(f"{self.name}{self.datasets}{number}".encode()).hexdigest()[:12]
        identity = f"{at:%Y%m%dT%H%M%S}{number:08x}{random}"
        first = number * self.files_per_manifest
        numbers = range(first, min(first + self.files_per_manifest, self.files))
        files = tuple(sorted(self._file(partition, at, file) for file in numbers))
        return Manifest(identity, Lane.BATCH, partition, at.isoformat(timespec="milliseconds"), files)

    def number_of(self, manifest: str) -> int:
        """The number of the manifest with this id."""
        return int(manifest[15:23], 16)

    def rows(self) -> Iterator[dict[str, Any]]:
        """The ledger's items of all manifests, as ``enqueue`` puts them."""
        for number in range(self.manifests):
            manifest = self.manifest(number)
            yield {**manifest_row_key(manifest.id).item(), **queued_attributes(queued_row(manifest))}

    def first_manifests(self) -> list[Manifest]:
        """The manifests of the first hour, with at most ``MAX_LISTED_FILES`` files: what the bucket's listing has."""
        manifests = min(self.manifests // self.hours, MAX_LISTED_FILES // self.files_per_manifest)
        return [self.manifest(number) for number in range(manifests)]

    def arrival_row(self, manifest: Manifest, file: ObjectVersion) -> dict[str, Any]:
        """The item of an arrival that the manifest owns, as ``put`` puts it."""
        return {
            **arrival_key(file.bucket, file.key, file.version).item(),
            "bucket": file.bucket,
            "key": file.key,
            "etag": file.etag,
            "size": file.size,
            "arrived_at": file.arrived_at,
            "version_id": file.version_id,
            "manifest": manifest.id,
            "partition": str(manifest.partition),
            "lane": manifest.lane,
            "reason": "outside peak hours: waits for the overnight run",
            "recorded_at": manifest.created_at,
        }

    def _file(self, partition: Partition, at: datetime, number: int) -> ObjectVersion:
        etag = hashlib.md5(str(number).encode(), usedforsecurity=False).hexdigest()
        key = f"{partition.dataset}/{at:%Y/%m/%d/%H}/part-{number:08}.ndjson"
        return ObjectVersion(
            RESOURCES.input_bucket, key, etag, self.file_bytes, at.isoformat(timespec="milliseconds"), etag
        )


NIGHTS = {
    "A1": Night("A", 338_000, 4_500_000_000, 24, 15, 1),
    "A10": Night("A", 338_000, 4_500_000_000, 24, 4, 10),
    "B1": Night("B", 2_400_000, 3_500_000, 12, 220, 1),
    "B10": Night("B", 2_400_000, 3_500_000, 12, 22, 10),
}
