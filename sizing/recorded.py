"""The files of a past day, as the ledger's owners recorded them: every manifest's document has its files."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, NamedTuple

from lake.compression import has_compressed_name
from lake.dataset_rules import matching_rule
from lake.errors import InvalidInputError
from lake.layout import list_objects, manifest_day_prefix
from lake.manifest import Identity, Manifest, decode_manifest
from lake.settings import Settings
from lake.texts import format_count
from sizing.arrivals import DAY_SECONDS, FileGroup, windows_of_day

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

LATE = timedelta(hours=3)
"""Files are recorded soon after they arrive; one whose event was lost, by the sweep after ``sweep.missed_minutes``."""
PARALLEL_READS = 32
LOG_INTERVAL = 1000
"""Documents between two messages of progress."""


class RecordedFile(NamedTuple):
    """One file."""

    key: str
    size: int
    """Bytes as stored."""
    time: float
    """Time of its arrival, in seconds since the epoch."""


class RecordedArrivals:
    """The files that arrived in the 24 hours before a night (aware); the same at every call.

    Keys that the settings treat alike are followed under one of them, and files of one window that are alike are only
    counted. Raises ``InvalidInputError`` if there is no file of the day.
    """

    def __init__(self, files: Iterable[RecordedFile], settings: Settings, night: datetime) -> None:
        self.night = night
        self._settings = settings
        self._keys: dict[tuple[object, ...], str] = {}
        self._windows: defaultdict[int, Counter[tuple[str, int]]] = defaultdict(Counter)
        first = night.timestamp() - DAY_SECONDS
        for key, size, time in files:
            if 0 <= time - first < DAY_SECONDS:
                window = int(time - first) // settings.input.event_window_seconds
                self._windows[window][self._representative(key), size] += 1
        if not self._windows:
            raise InvalidInputError(f"the ledger has no file of the 24 hours before {night:%Y-%m-%dT%H:%MZ}")

    def windows(self) -> Iterator[Sequence[FileGroup]]:
        """The groups of each of the day's windows, in order of time."""
        for window in range(windows_of_day(self._settings)):
            yield [FileGroup(key, size, count) for (key, size), count in self._windows.get(window, {}).items()]

    def _representative(self, key: str) -> str:
        """The first key that the settings treat like this one."""
        settings = self._settings
        rule, dataset = matching_rule(key, settings.datasets)
        urgent = any(fnmatchcase(key, pattern) for pattern in settings.urgent.keys)
        ignored = key.endswith("/") or settings.input.suffix_of(key) is None
        return self._keys.setdefault((rule, dataset, urgent, ignored, has_compressed_name(key)), key)


def read_recorded(
    s3: S3Client, control_bucket: str, input_bucket: str, night: datetime, log: Callable[[str], object]
) -> Iterator[RecordedFile]:
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
                    yield RecordedFile(file.key, file.size, arrived.timestamp())


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
