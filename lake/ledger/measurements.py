"""What the conversions of a dataset measured. Pure.

Its speed is the median of its last manifests, so that one slow file does not change forecasts.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

MAX_SAMPLES = 15
"""Samples kept of each kind: eight of them have to be slow before the median is. Both kinds fit in one write unit."""
MIN_SAMPLE_BYTES = 16_000_000
"""Stored bytes of a sample. Requests take most of the time of smaller input; it is summed until it is a sample."""
MAX_WEIGHT_BYTES = 16 * MIN_SAMPLE_BYTES
"""A larger sample weighs no more: otherwise one large slow file would outweigh a dataset of small ones."""


class SpeedSample(NamedTuple):
    """What one manifest, or several small ones, took."""

    bytes: int
    """As stored."""
    milliseconds: int
    """Time of tasks, summed over cores."""


class SpeedSamples(NamedTuple):
    """The last samples of a dataset, of one kind of files."""

    samples: tuple[SpeedSample, ...] = ()
    """Oldest first, of at least ``MIN_SAMPLE_BYTES`` each."""
    rest: SpeedSample = SpeedSample(0, 0)
    """Small manifests that are not a sample yet."""

    def add(self, sample: SpeedSample) -> SpeedSamples:
        """With one conversion more; pure."""
        if sample.bytes <= 0 or sample.milliseconds <= 0:
            return self
        rest = self.rest
        if sample.bytes < MIN_SAMPLE_BYTES:
            sample = SpeedSample(rest.bytes + sample.bytes, rest.milliseconds + sample.milliseconds)
            rest = SpeedSample(0, 0)
            if sample.bytes < MIN_SAMPLE_BYTES:
                return SpeedSamples(self.samples, sample)
        return SpeedSamples((*self.samples, sample)[-MAX_SAMPLES:], rest)

    @property
    def median(self) -> float | None:
        """Stored bytes per second and core, weighted by bytes; of two in the middle the faster one. None: no sample."""
        weighted = [(size * 1000 / milliseconds, min(size, MAX_WEIGHT_BYTES)) for size, milliseconds in self.samples]
        half, passed = sum(weight for _, weight in weighted) / 2, 0
        for speed, weight in sorted(weighted, reverse=True):
            passed += weight
            if passed >= half:
                return speed
        return None


NO_SAMPLES = SpeedSamples()


@dataclass(frozen=True, slots=True)
class DatasetSpeed:
    """Input bytes as stored per second and core; None: no file of this kind has been converted."""

    plain: float | None
    compressed: float | None
    """Speed of compressed files, of which a stored byte takes several times as long."""


@dataclass(frozen=True, slots=True)
class DatasetMeasurement:
    """What the conversion of one manifest measured."""

    input_bytes: int
    """Size, as stored, of its files."""
    output_bytes: int
    """Size of their Parquet files."""
    task_milliseconds: int
    """Time of their tasks, summed over cores."""
    compressed_bytes: int = 0
    """The part of ``input_bytes`` in files that the reader found to be compressed ..."""
    compressed_milliseconds: int = 0
    """... and of ``task_milliseconds`` for them."""


@dataclass(frozen=True, slots=True)
class MeasuredDataset:
    """What the conversions of a dataset measured."""

    input_bytes: int = 0
    output_bytes: int = 0
    plain: SpeedSamples = NO_SAMPLES
    compressed: SpeedSamples = NO_SAMPLES

    @property
    def output_ratio(self) -> float | None:
        """Parquet bytes per input byte; None before the first conversion."""
        return self.output_bytes / self.input_bytes if self.input_bytes else None

    @property
    def speed(self) -> DatasetSpeed:
        """The two kinds of files apart.

        A forecast knows names and no content. Compressed files without such a name are forecast as plain ones, so
        where no plain file was measured, compressed ones stand for them.
        """
        compressed = self.compressed.median
        return DatasetSpeed(self.plain.median or compressed, compressed)
