"""How long a core works on manifests: as measured for their dataset, else as the settings assume. Pure."""

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import NamedTuple

from lake.ledger import DatasetSpeed, ManifestRow
from lake.manifest import ObjectVersion, has_compressed_name
from lake.settings import Settings

MEGABYTE = 1_000_000
FILES_PER_SECOND = 1_350.0
"""Measured: small objects per second of one core that reads ``S3_REQUESTS`` (transform/source.py) at once, from a
server that waits 30 ms before the first byte. A file below about 30 kB takes the time of its request."""
SLOW, FAST = 0.75, 2.0
"""Low and high of a forecast as multiples of the assumed speed: 30 and 80 MB/s for 40. The speed of one vCPU that reads
from S3 was never measured; a dataset whose speed the ledger has measured has no range."""
NOT_MEASURED = DatasetSpeed(None, None)


class Speeds:
    """Speeds of datasets, separately for plain and compressed files.

    ``measured`` has the datasets that were converted before; ``settings.price`` has the assumed speed of all others. A
    compressed file is one task, for one core; so is every file with ``convert.concatenated``.
    """

    def __init__(self, measured: Mapping[str, DatasetSpeed], settings: Settings) -> None:
        self._measured, self._settings = measured, settings
        self._plain = settings.price.mb_per_second_per_core * MEGABYTE
        self._compressed = settings.price.compressed_mb_per_second_per_core * MEGABYTE

    def at(self, share: float) -> "Speeds":
        """The speeds if plain files are read ``share`` times as fast as assumed; measured speeds stay.

        Compressed files are not faster then, because the processor limits them, but they are slower if S3 is.
        """
        price = self._settings.price
        network, compressed = price.mb_per_second_per_core, price.compressed_mb_per_second_per_core
        compressed = min(compressed, share * max(network, compressed))
        changed = replace(price, mb_per_second_per_core=share * network, compressed_mb_per_second_per_core=compressed)
        return Speeds(self._measured, replace(self._settings, price=changed))

    def core_seconds(self, row: ManifestRow) -> float:
        """Seconds of one Glue vCPU for a manifest: for its bytes, or for its requests if these take longer."""
        return self.busy_seconds(row, math.inf)

    def busy_seconds(self, row: ManifestRow, max_file_seconds: float) -> float:
        """``core_seconds``, with at most ``max_file_seconds`` for each file that is one task."""
        seconds = 0.0
        for size, speed, is_one_task in self._kinds(row):
            files = max(row.files * size / max(row.bytes, 1), 1.0)
            seconds += min(size / speed, files * max_file_seconds) if is_one_task else size / speed
        return max(seconds, row.files / FILES_PER_SECOND)

    def file_seconds(self, file: ObjectVersion) -> float:
        """Seconds of one vCPU for a file of a dataset without a measurement."""
        speed = self._compressed if has_compressed_name(file.key) else self._plain
        return max(file.size / speed, 1 / FILES_PER_SECOND)

    def longest_seconds(self, row: ManifestRow) -> float:
        """Seconds of one vCPU for a one-task file of the manifest's average size; 0 if it has no such file."""
        average = row.bytes / max(row.files, 1)
        return max(min(size, average) / speed for size, speed, is_one_task in self._kinds(row) if is_one_task)

    def is_measured(self, row: ManifestRow) -> bool:
        """Whether the dataset has a measured speed for each kind of files in the manifest."""
        found = self._of(row)
        plain = row.bytes == row.compressed_bytes or found.plain is not None
        return plain and (not row.compressed_bytes or found.compressed is not None)

    def _kinds(self, row: ManifestRow) -> tuple[tuple[int, float, bool], ...]:
        """For plain and compressed files: their bytes, the speed of a core, and whether each such file is one task."""
        found = self._of(row)
        return (
            (row.bytes - row.compressed_bytes, found.plain or self._plain, self._settings.convert.concatenated),
            (row.compressed_bytes, found.compressed or self._compressed, True),
        )

    def _of(self, row: ManifestRow) -> DatasetSpeed:
        return self._measured.get(row.partition.dataset, NOT_MEASURED)


class InputSize(NamedTuple):
    core_seconds: float
    """Time of one core for the input, with at most ``SECONDS_PER_CORE`` for a compressed file, which is one task."""
    files: int
