"""The two loads: A, 338,000 files of 4.5 GB in a day, and B, 2.4 million files of 3.5 MB in 12 hours."""

import hashlib
import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from lake.documents import encode, encode_body
from lake.ledger import ArrivalRow, CollectionId, Part
from lake.ledger.arrivals import arrival_key
from lake.ledger.collections import collection_key, open_collection_attributes, part_attributes, part_item_key, part_row
from lake.ledger.manifest_row import manifest_row_key, queued_row, row_attributes
from lake.manifest import Lane, Manifest, ObjectVersion, Partition
from lake.manifest_documents import new_part
from lake.resource_names import ResourceNames
from lake.settings import BatchSettings, ConvertSettings, InputSettings
from lake.time import iso_utc
from router.estimate.other_costs import OUTPUT_RATIO
from sizing.routing import POLLERS

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
    """One load, with a number of datasets between which its files are divided evenly.

    The hours are divided into manifests, except the last hour, whose collection is open.
    """

    name: str
    files: int
    file_bytes: int
    hours: int
    files_per_part: int
    """Files that one invocation of ``route`` sees."""
    datasets: int
    manifest_files: int

    @property
    def hour_files(self) -> int:
        return self.files // self.hours

    @property
    def divided(self) -> int:
        return (self.hours - 1) * self.datasets * self._pieces

    @property
    def parts(self) -> int:
        return -(-self.hour_files // self.files_per_part)

    @property
    def objects(self) -> int:
        """Number of objects in the lake of a full manifest."""
        files = min(self.manifest_files, -(-self.hour_files // self.datasets))
        return max(1, round(files * self.file_bytes * OUTPUT_RATIO / ConvertSettings().target_file_bytes))

    @property
    def last_hour(self) -> str:
        return f"{self._hour(self.hours - 1):%Y-%m-%dT%H}"

    def dataset_names(self) -> list[str]:
        return [self._dataset(number) for number in range(self.datasets)]

    def manifest(self, number: int) -> Manifest:
        hour, rest = divmod(number, self.datasets * self._pieces)
        dataset, piece = divmod(rest, self._pieces)
        first, end = hour * self.hour_files, (hour + 1) * self.hour_files
        first += (dataset - first) % self.datasets + piece * self.manifest_files * self.datasets
        numbers = range(first, min(first + self.manifest_files * self.datasets, end), self.datasets)
        at = self._hour(hour)
        files = tuple(sorted(map(self._file, numbers)))
        partition = Partition.of(self._dataset(dataset), at)
        return Manifest(self._id("manifest", number, at), Lane.BATCH, partition, iso_utc(at), files)

    def part(self, number: int) -> tuple[Part, bytes]:
        """Return the last hour's part with this number, from 0, and the bytes of its document; always the same."""
        first, end = (self.hours - 1) * self.hour_files, self.hours * self.hour_files
        first += number * self.files_per_part
        files: dict[str, list[ObjectVersion]] = {}
        for file in range(first, min(first + self.files_per_part, end)):
            files.setdefault(self._dataset(file % self.datasets), []).append(self._file(file))
        at = self._hour(self.hours - 1)
        return new_part(self._id("part", number, at), self.last_hour, iso_utc(at), files)

    def rows(self) -> Iterator[dict[str, Any]]:
        """Yield the ledger's items of all manifests, as a division puts them, and of the open collection."""
        for number in range(self.divided):
            manifest = self.manifest(number)
            row = queued_row(manifest, hashlib.sha256(encode_body(manifest)).hexdigest())
            yield {**manifest_row_key(manifest.id).item(), **row_attributes(row)}
        collection, sums = CollectionId.numbered(self.last_hour, 1), Counter(parts=0, files=0, bytes=0)
        for part, _ in map(self.part, range(self.parts)):
            sums.update(parts=1, files=part.files, bytes=part.bytes)
            yield {**manifest_row_key(part.id).item(), **part_row(part, collection)}
            yield {**part_item_key(collection, part.id).item(), **part_attributes(part)}
        yield {**collection_key(collection).item(), **sums, "changed_at": "", **open_collection_attributes(collection)}

    def first_manifests(self) -> list[Manifest]:
        """Return the manifests of the first hour, with the listing's files, at most ``MAX_LISTED_FILES``."""
        found: list[Manifest] = []
        files = 0
        for number in range(self.datasets * self._pieces):
            manifest = self.manifest(number)
            files += len(manifest.files)
            if files > MAX_LISTED_FILES:
                break
            found.append(manifest)
        return found

    def arrival_row(self, manifest: Manifest, file: ObjectVersion) -> dict[str, Any]:
        """Return the item of an arrival that the manifest owns, as ``put`` puts it."""
        reason = "outside peak hours: waits for the overnight run"
        row = ArrivalRow(file, manifest.id, manifest.partition, manifest.lane, reason, manifest.created_at)
        return {**arrival_key(file.bucket, file.key, file.version).item(), **encode(row)}

    @property
    def _pieces(self) -> int:
        return math.ceil(math.ceil(self.hour_files / self.datasets) / self.manifest_files)

    def _hour(self, number: int) -> datetime:
        return START + timedelta(hours=number)

    def _dataset(self, number: int) -> str:
        return f"dataset_{number:04}"

    def _id(self, kind: str, number: int, at: datetime) -> str:
        random = hashlib.sha256(f"{kind}{self.name}{self.datasets}{number}".encode()).hexdigest()[:12]
        return f"{at:%Y%m%dT%H%M%S}{number:08x}{random}"

    def _file(self, number: int) -> ObjectVersion:
        at = self._hour(number // self.hour_files)
        etag = hashlib.md5(str(number).encode(), usedforsecurity=False).hexdigest()
        key = f"{self._dataset(number % self.datasets)}/{at:%Y/%m/%d/%H}/part-{number:08}.ndjson"
        return ObjectVersion(RESOURCES.input_bucket, key, etag, self.file_bytes, iso_utc(at), etag)


def night(name: str, files: int, file_bytes: int, hours: int, datasets: int) -> Night:
    """A load with the parts and manifests that ``route`` and the sweeps make by default."""
    in_window = files / (hours * 3600) * InputSettings().event_window_seconds
    batch = BatchSettings()
    most = min(batch.manifest_files, batch.manifest_bytes // file_bytes)
    return Night(name, files, file_bytes, hours, max(1, int(in_window / POLLERS)), datasets, most)


LOADS = {"A": (338_000, 4_500_000_000, 24), "B": (2_400_000, 3_500_000, 12)}
NIGHTS = {
    "A10": night("A", *LOADS["A"], 10),
    **{f"B{datasets}": night("B", *LOADS["B"], datasets) for datasets in (10, 100, 1_000, 10_000)},
}
