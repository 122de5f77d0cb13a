"""What the benchmark compares, and its figures: the median of what one competitor took for one shape."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bench.input_files import InputFiles


@dataclass(frozen=True, slots=True)
class Competitor:
    """One tool with its configuration."""

    name: str
    """Its name in the tables and in results.json."""
    kind: str
    """``spark``: one process for the whole run, as a job; ``library``: a new process for each measurement."""
    method: str
    """Its name in ``bench.measurement_server``."""
    cores: int
    description: str
    """For the report."""


COMPETITORS = (
    Competitor("hybrid_router", "spark", "hybrid_router", 2, "hybrid-router, Spark local[2]"),
    Competitor("hybrid_router_1_core", "spark", "hybrid_router", 1, "hybrid-router, Spark local[1]"),
    Competitor("spark_one_pass", "spark", "one_pass", 2, "Spark, one pass, all-string schema given, dictionary off"),
    Competitor("spark_naive", "spark", "naive", 2, "Spark, naive job: infer, cast, count, coalesce, write"),
    Competitor("duckdb", "library", "duckdb", 2, "DuckDB, 2 threads, columns given"),
    Competitor("convert", "library", "convert", 2, "hybrid-router convert, 2 threads"),
    Competitor("polars", "library", "polars", 2, "Polars, 2 threads, columns given"),
)
PRODUCT = "hybrid_router"
MAIN_SHAPES = ("flat", "nested")
"""Shapes on which hybrid-router is compared with every competitor."""
SLOWEST = "spark_naive"
"""It takes as long as all others together: on other shapes than the main ones only the first round measures it."""


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
        """The figure of at least one measurement; each holds the fields of ``bench.measurement_server.Measurement``."""
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
