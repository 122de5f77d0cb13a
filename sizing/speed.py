"""How long one core works on files, and how many tasks can share the work."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from lake.ledger import DatasetSpeed
from lake.settings import Settings
from lake.settings.operation import PriceSettings
from lake.speed import FILES_PER_SECOND, MEGABYTE
from router.estimate.other_costs import OUTPUT_RATIO

CPU_PLAIN = 178.0
"""Measured: megabytes of nested NDJSON a second and core (docs/performance.md, "Figures")."""
CPU_GZIP = 126.0
"""Measured: inflated megabytes of gzip files (the same table)."""


def given_gzip_speed(settings: Settings) -> float | None:
    """``price.compressed_mb_per_second_per_core``, unless it is the default: that holds for one ratio only."""
    given = settings.price.compressed_mb_per_second_per_core
    return None if given == PriceSettings().compressed_mb_per_second_per_core else given


@dataclass(frozen=True, slots=True)
class Work:
    """What the files of a manifest take."""

    core_seconds: float
    tasks: int
    """Cores that can work on it at the same time."""
    longest_seconds: float
    """Longest task; a compressed file is one, however large."""
    compressed_seconds: float = 0.0
    """The part of ``core_seconds`` for compressed files."""
    inflated_bytes: float = 0.0


@dataclass(frozen=True, slots=True)
class Speed:
    """Speed of one core, and the size of a task."""

    plain: float
    """Bytes as stored a second."""
    gzip: float
    """The same of compressed files."""
    task_bytes: float
    """Bytes of NDJSON that make one output file."""
    split_bytes: int
    ratio: float
    """Bytes of NDJSON for each byte of a compressed file."""
    measured: Mapping[str, DatasetSpeed] = field(default_factory=dict)
    """By dataset: what takes the place of ``plain`` and ``gzip``."""

    @classmethod
    def of(cls, settings: Settings, ratio: float, measured: Mapping[str, DatasetSpeed] | None = None) -> Speed:
        """The slower one of network and processor; the network's share of a core is that of the settings' forecasts.

        A speed of compressed files that the settings give takes the place of the measured one.
        """
        network = settings.price.mb_per_second_per_core
        return cls(
            min(network, CPU_PLAIN) * MEGABYTE,
            min(network, given_gzip_speed(settings) or CPU_GZIP / ratio) * MEGABYTE,
            settings.convert.target_file_bytes / OUTPUT_RATIO,
            settings.convert.split_bytes,
            ratio,
            measured or {},
        )

    def of_dataset(self, name: str) -> Speed:
        """With what was measured of this dataset, plain and compressed files apart."""
        found = self.measured.get(name)
        if found is None:
            return self
        return replace(self, plain=found.plain or self.plain, gzip=found.compressed or self.gzip, measured={})

    def rate(self, dataset: str, compressed: bool) -> float:
        """Bytes as stored that a core converts of such files in a second."""
        own = self.of_dataset(dataset)
        return own.gzip if compressed else own.plain

    def is_measured(self, dataset: str, compressed: bool) -> bool:
        """Whether the ledger has measured such files."""
        found = self.measured.get(dataset)
        return found is not None and (found.compressed if compressed else found.plain) is not None

    def file_seconds(self, dataset: str, compressed: bool, size: int) -> float:
        """Time of a core for one such file: that of its bytes, or of its request where that takes longer."""
        return max(size / self.rate(dataset, compressed), 1 / FILES_PER_SECOND)

    def work(
        self, plain_bytes: int, gzip_bytes: int, longest_gzip: int, gzip_files: int, files: int, manifests: int = 1
    ) -> Work:
        """Work on ``files`` of these sizes as stored, in ``manifests`` of different datasets.

        Each file takes the time of its request at least.
        """
        compressed_seconds = gzip_bytes / self.gzip
        seconds = max(plain_bytes / self.plain + compressed_seconds, files / FILES_PER_SECOND)
        inflated = plain_bytes + gzip_bytes * self.ratio
        splits = -(-plain_bytes // self.split_bytes) + gzip_files
        tasks = max(manifests, min(round(inflated / self.task_bytes), splits))
        return Work(seconds, tasks, max(seconds / tasks, longest_gzip / self.gzip), compressed_seconds, inflated)
