"""The files of a past day, as the ledger's owners recorded them: every manifest's document has its files."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from lake.counted import format_count
from lake.layout import manifest_day_prefix
from lake.manifest import Identity, Manifest, decode_manifest
from lake.object_listing import list_objects
from sizing.arrivals import DAY_SECONDS
from sizing.listing import ListedFile

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client


LATE = timedelta(hours=3)
"""Files are recorded soon after they arrive; one whose event was lost, by the sweep after ``sweep.missed_minutes``."""
PARALLEL_READS = 32
LOG_INTERVAL = 1000
"""Documents between two messages of progress."""


def read_recorded(
    s3: S3Client, control_bucket: str, input_bucket: str, night: datetime, log: Callable[[str], object]
) -> Iterator[ListedFile]:
    """The files that arrived in the 24 hours before ``night`` (aware), each version once. Only reads.

    A file that was IGNORED is in no manifest. Manifests that are divided or handed over list their files again.
    """
    first, last = night - timedelta(seconds=DAY_SECONDS), night + LATE
    # Hashes of identities: with millions of files they take a tenth of the memory.
    seen: set[int] = set()
    with ThreadPoolExecutor(PARALLEL_READS) as pool:
        keys = list(_keys(s3, control_bucket, first, last))
        log(f"{format_count(len(keys), 'manifest document')} of the day")
        documents = pool.map(lambda key: _read(s3, control_bucket, key, input_bucket), keys)
        for number, manifest in enumerate(documents, 1):
            if number % LOG_INTERVAL == 0:
                log(f"{number} of {len(keys)} documents are read")
            for file in manifest.files:
                arrived = datetime.fromisoformat(file.arrived_at)
                identity = hash(Identity.of(file))
                if first <= arrived < night and identity not in seen:
                    seen.add(identity)
                    yield ListedFile(file.key, file.size, arrived.timestamp())


def _keys(s3: S3Client, bucket: str, first: datetime, last: datetime) -> Iterator[str]:
    """Documents of the manifests that were made in this time: their ids begin with it."""
    day = first
    while day.date() <= last.date():
        prefix = manifest_day_prefix(f"{day:%Y-%m-%d}")
        for item in list_objects(s3, bucket, prefix):
            made = item["Key"].rpartition("/")[2][:15]
            if f"{first:%Y%m%dT%H%M%S}" <= made <= f"{last:%Y%m%dT%H%M%S}":
                yield item["Key"]
        day += timedelta(days=1)


def _read(s3: S3Client, bucket: str, key: str, input_bucket: str) -> Manifest:
    return decode_manifest(s3.get_object(Bucket=bucket, Key=key)["Body"].read(), (input_bucket,))
