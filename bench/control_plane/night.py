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
from lake.settings import BatchSettings, InputSettings
from router.merge.merge import MAX_SOURCES
from router.sweep.small_manifests import SMALL_SHARE
from sizing.assumptions import POLLERS

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
    """That one invocation of ``route`` sees of one dataset."""
    datasets: int
    swept_files: int = 0
    """Files of the manifests into which sweeps have merged those of all hours but the last one; 0: there was none."""

    @property
    def manifests(self) -> int:
        """Number of manifests that wait for the night."""
        return self._merged + -(-(self.files - self._swept) // self.files_per_manifest)

    def dataset_names(self) -> list[str]:
        """Names of the datasets, sorted."""
        return [f"dataset_{number:02}" for number in range(self.datasets)]

    def manifest(self, number: int) -> Manifest:
        """The manifest of this number, from 0; always the same."""
        numbers = self._numbers(number)
        at = START + timedelta(hours=self.hours) * numbers.start / self.files
        partition = Partition.of(self.dataset_names()[number % self.datasets], at)
        random = hashlib.sha256(f"{self.name}{self.datasets}{number}".encode()).hexdigest()[:12]
        identity = f"{at:%Y%m%dT%H%M%S}{number:08x}{random}"
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
        files = min(self.files // self.hours, MAX_LISTED_FILES)
        return [self.manifest(number) for number in range(files // (self.swept_files or self.files_per_manifest))]

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

    @property
    def _swept(self) -> int:
        """Files of the hours whose manifests sweeps have merged."""
        return self.files // self.hours * (self.hours - 1) if self.swept_files else 0

    @property
    def _merged(self) -> int:
        return -(-self._swept // self.swept_files) if self.swept_files else 0

    def _numbers(self, manifest: int) -> range:
        """The files of a manifest, by number."""
        if manifest < self._merged:
            first = manifest * self.swept_files
            return range(first, min(first + self.swept_files, self._swept))
        first = self._swept + (manifest - self._merged) * self.files_per_manifest
        return range(first, min(first + self.files_per_manifest, self.files))

    def _file(self, partition: Partition, at: datetime, number: int) -> ObjectVersion:
        etag = hashlib.md5(str(number).encode(), usedforsecurity=False).hexdigest()
        key = f"{partition.dataset}/{at:%Y/%m/%d/%H}/part-{number:08}.ndjson"
        return ObjectVersion(
            RESOURCES.input_bucket, key, etag, self.file_bytes, at.isoformat(timespec="milliseconds"), etag
        )


def night(name: str, files: int, file_bytes: int, hours: int, datasets: int) -> Night:
    """A load with the manifests that ``route`` makes by default, those of hours that are over merged by sweeps."""
    in_window = files / (hours * 3600) * InputSettings().event_window_seconds
    batch = BatchSettings()
    most = min(batch.manifest_files, batch.manifest_bytes // file_bytes)
    routed = max(1, min(int(in_window / POLLERS / datasets), most))
    swept = routed
    while swept <= most // SMALL_SHARE:
        swept *= min(MAX_SOURCES, most // swept)
    return Night(name, files, file_bytes, hours, routed, datasets, swept)


NIGHTS = {
    f"{name}{datasets}": night(name, *load, datasets)
    for name, load in (("A", (338_000, 4_500_000_000, 24)), ("B", (2_400_000, 3_500_000, 12)))
    for datasets in (1, 10)
}
