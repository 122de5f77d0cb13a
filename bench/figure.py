"""One figure of the benchmark: the median of what one competitor took for one shape."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bench.competitors import Competitor
from bench.input_files import InputFiles

MEGABYTE = 10**6


@dataclass(frozen=True, slots=True)
class Figure:
    """One competitor on one shape: medians over the rounds. A megabyte is 10^6 bytes of inflated NDJSON."""

    competitor: str
    shape: str
    cores: int
    seconds: float
    all_seconds: tuple[float, ...]
    mb_per_second: float
    mb_per_second_per_core: float
    output_bytes: int
    output_files: int
    peak_bytes: int | None
    """The maximum of all rounds; None for competitors whose memory is not measured."""

    @classmethod
    def of(cls, competitor: Competitor, files: InputFiles, measurements: Sequence[Mapping[str, Any]]) -> Figure:
        """The figure of at least one measurement; each holds the fields of ``bench.measurement.Measurement``."""
        seconds = [float(measurement["seconds"]) for measurement in measurements]
        median = statistics.median(seconds)
        speed = files.bytes / MEGABYTE / median
        peaks = [item["peak_bytes"] for item in measurements if item["peak_bytes"] is not None]
        return cls(
            competitor.name,
            files.shape,
            competitor.cores,
            median,
            tuple(seconds),
            speed,
            speed / competitor.cores,
            measurements[-1]["output_bytes"],
            measurements[-1]["output_files"],
            max(peaks) if peaks else None,
        )
