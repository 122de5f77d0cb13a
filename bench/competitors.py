"""What the benchmark compares: hybrid-router's conversion and the tools that a person could use instead."""

from __future__ import annotations

from dataclasses import dataclass


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
