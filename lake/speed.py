"""How long a core works on manifests: by what their dataset measured, else by what the settings assume. Pure."""

import math
from collections.abc import Mapping
from dataclasses import replace

from lake.ledger import DatasetSpeed, ManifestRow
from lake.manifest import ObjectVersion, has_compressed_name
from lake.settings import Settings

MEGABYTE = 1_000_000
FILES_PER_SECOND = 1_350.0
"""Measured: small objects that a core reads, ``S3_REQUESTS`` (transform/source.py) at once, from a server
that waits 30 ms before the first byte. A file below about 30 kB takes the time of its request."""
SLOW, FAST = 0.75, 2.0
"""A forecast's low and high as multiples of the assumed speed: 30 and 80 MB/s for 40. No one has measured what a vCPU
reads from S3; a dataset whose speed the ledger has measured has no range."""
NOT_MEASURED = DatasetSpeed(None, None)


class Speeds:
    """Speeds of datasets, plain and compressed files apart.

    ``measured``: of the datasets that have been converted. ``settings``: ``price`` has what is assumed of the others. A
    compressed file is one task, for one core; with ``convert.concatenated`` every file is.
    """

    def __init__(self, measured: Mapping[str, DatasetSpeed], settings: Settings) -> None:
        self._measured, self._settings = measured, settings
        self._plain = settings.price.mb_per_second_per_core * MEGABYTE
        self._compressed = settings.price.compressed_mb_per_second_per_core * MEGABYTE

    def at(self, share: float) -> "Speeds":
        """Speeds with plain files assumed to be read ``share`` times as fast; what was measured stays.

        Compressed files are not read faster: the processor is their limit. They are slower where S3 is.
        """
        price = self._settings.price
        network, compressed = price.mb_per_second_per_core, price.compressed_mb_per_second_per_core
        compressed = min(compressed, share * max(network, compressed))
        changed = replace(price, mb_per_second_per_core=share * network, compressed_mb_per_second_per_core=compressed)
        return Speeds(self._measured, replace(self._settings, price=changed))

    def core_seconds(self, row: ManifestRow) -> float:
        """Time of one vCPU of Glue for a manifest: for its bytes, or for its requests where they take longer."""
        return self.busy_seconds(row, math.inf)

    def busy_seconds(self, row: ManifestRow, max_file_seconds: float) -> float:
        """``core_seconds`` with at most ``max_file_seconds`` for each file that is one task."""
        seconds = 0.0
        for size, speed, is_one_task in self._kinds(row):
            files = max(row.files * size / max(row.bytes, 1), 1.0)
            seconds += min(size / speed, files * max_file_seconds) if is_one_task else size / speed
        return max(seconds, row.files / FILES_PER_SECOND)

    def file_seconds(self, file: ObjectVersion) -> float:
        """Time of one vCPU for a file of a dataset that has measured nothing."""
        speed = self._compressed if has_compressed_name(file.key) else self._plain
        return max(file.size / speed, 1 / FILES_PER_SECOND)

    def longest_seconds(self, row: ManifestRow) -> float:
        """Time of one vCPU for a file of the manifest's average size that is one task; 0: it has none."""
        average = row.bytes / max(row.files, 1)
        return max(min(size, average) / speed for size, speed, is_one_task in self._kinds(row) if is_one_task)

    def is_measured(self, row: ManifestRow) -> bool:
        """Whether the dataset has measured every kind of files that the manifest has."""
        found = self._of(row)
        plain = row.bytes == row.compressed_bytes or found.plain is not None
        return plain and (not row.compressed_bytes or found.compressed is not None)

    def _kinds(self, row: ManifestRow) -> tuple[tuple[int, float, bool], ...]:
        """Bytes of the plain and of the compressed files, a core's speed, whether such a file is one task."""
        found = self._of(row)
        return (
            (row.bytes - row.compressed_bytes, found.plain or self._plain, self._settings.convert.concatenated),
            (row.compressed_bytes, found.compressed or self._compressed, True),
        )

    def _of(self, row: ManifestRow) -> DatasetSpeed:
        return self._measured.get(row.partition.dataset, NOT_MEASURED)
