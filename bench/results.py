"""The results of one run of the benchmark, for machines and people, and whether they meet the targets."""

import math
import platform
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from importlib.metadata import version
from itertools import groupby
from pathlib import Path
from typing import Any

from bench.competitors import COMPETITORS, MAIN_SHAPES, PRODUCT
from bench.lake_queries import WRITERS
from bench.runner import Figure
from bench.shapes import SHAPES
from scripts.markdown_page import markdown_table

MARKERS = ("<!-- figures: written by make bench -->", "<!-- end of figures -->")
LAKES_MARKERS = ("<!-- lakes: written by make bench -->", "<!-- end of lakes -->")

MIN_RATIOS = (
    (MAIN_SHAPES, PRODUCT, "spark_one_pass", 2.0),
    (MAIN_SHAPES, PRODUCT, "spark_naive", 4.0),
    (MAIN_SHAPES, PRODUCT, "duckdb", 1.4),
    (MAIN_SHAPES, PRODUCT, "hybrid_router_1_core", 1.7),
    (("weblog", "random_order", "sparse", "wide"), PRODUCT, "spark_one_pass", 1.5),
    (("tiny",), "convert", "polars", 1.0),
)
"""Shapes, two competitors, and the minimum of the first one's speed divided by the second one's."""
MAX_TASK_BYTES = 300 * 10**6
MAX_SIZE_RATIO = 1.03
MAX_QUERY_RATIO = 1.1


@dataclass(frozen=True, slots=True)
class Target:
    metric: str
    measured: str
    target: str
    met: bool


def check_targets(figures: Sequence[Figure]) -> list[Target]:
    speeds = {(figure.competitor, figure.shape): figure.mb_per_second for figure in figures}
    targets = [
        _ratio(f"{shape}: {first} / {second}", speeds[first, shape] / speeds[second, shape], minimum=minimum)
        for shapes, first, second, minimum in MIN_RATIOS
        for shape in shapes
        if (first, shape) in speeds and (second, shape) in speeds
    ]
    for figure in figures:
        if figure.competitor == PRODUCT and figure.peak_bytes is not None:
            measured_mb, most = (f"{size / 1e6:.0f} MB" for size in (figure.peak_bytes, MAX_TASK_BYTES))
            met = figure.peak_bytes <= MAX_TASK_BYTES
            targets.append(Target(f"{figure.shape}: memory of a task", measured_mb, f"<= {most}", met))
    return targets


def check_lakes(lakes: Mapping[str, Mapping[str, Any]]) -> list[Target]:
    targets = []
    for shape, lake in lakes.items():
        smallest = min(size for writer, size in lake["bytes"].items() if writer != "convert")
        size_ratio = lake["bytes"]["convert"] / smallest
        targets.append(_ratio(f"{shape}: size / smallest lake", size_ratio, maximum=MAX_SIZE_RATIO))
        for engine, seconds in lake["seconds"].items():
            times = {writer: sum(of_query[writer] for of_query in seconds.values()) for writer in lake["bytes"]}
            metric = f"{shape}: five queries in {engine} / the quicker of DuckDB's and Spark's lakes"
            ratio = times["convert"] / min(times["duckdb"], times["spark"])
            targets.append(_ratio(metric, ratio, maximum=MAX_QUERY_RATIO))
    return targets


def _ratio(metric: str, ratio: float, *, minimum: float = 0, maximum: float = math.inf) -> Target:
    limit = f">= {minimum}" if minimum else f"<= {maximum}"
    return Target(metric, f"{ratio:.2f}", limit, minimum <= ratio <= maximum)


def outcome_of_targets(targets: Sequence[Target]) -> list[str]:
    """Return a sentence, and each target that was missed."""
    missed = [item for item in targets if not item.met]
    number = f"{len(targets) - len(missed)} of {len(targets)}"
    met = f"{number} targets are met (`bench/results.py`; `build/bench/results.json` has each)."
    return [met, *(f"- NOT met: {item.metric}: {item.measured}, target {item.target}" for item in missed)]


def join_sections(sections: Sequence[Sequence[str]]) -> str:
    return "\n\n".join("\n".join(section) for section in sections)


def _output(figure: Figure) -> str:
    size = f"{figure.output_bytes / 1e6:.1f}"
    return size if figure.peak_bytes is None else f"{size} ({figure.peak_bytes / 1e6:.0f})"


CPU_INFO = Path("/proc/cpuinfo")
PACKAGES = ("pyspark", "pyarrow", "duckdb", "polars")
BUSY_LOAD = 0.5
"""A load average above this before the start means that other processes used the machine."""


@dataclass(frozen=True, slots=True)
class Results:
    """Figures, and the circumstances under which they were measured."""

    figures: list[Figure]
    lakes: dict[str, dict[str, Any]]
    """The results of ``bench.lake_queries.measure_lakes``, by shape."""
    sizes: dict[str, int]
    rounds: int
    started: datetime
    load: float
    """The machine's load average of the last minute before the start."""
    cores: int

    def as_json(self) -> dict[str, object]:
        return {
            "about": self._about(self.sizes),
            "load_before": self.load,
            "ndjson_bytes": self.sizes,
            "figures": [asdict(figure) for figure in self.figures],
            "lakes": self.lakes,
            "targets": [asdict(target) for target in (*check_targets(self.figures), *check_lakes(self.lakes))],
        }

    def as_markdown(self) -> str:
        """MB of NDJSON per second and core, then output and memory: a row for each shape, a column for each tool."""
        names = [competitor.name for competitor in COMPETITORS]
        by_shape = [(shape, list(found)) for shape, found in groupby(self.figures, key=lambda figure: figure.shape)]
        speeds = [
            (f"{shape} ({SHAPES[shape].description})", *(f"{item.mb_per_second_per_core:.0f}" for item in found))
            for shape, found in by_shape
        ]
        outputs = [(shape, *map(_output, found)) for shape, found in by_shape]
        return join_sections(
            [
                self._about(self.sizes),
                [f"- `{competitor.name}`: {competitor.description}" for competitor in COMPETITORS],
                markdown_table(["MB/s per core"], names, speeds),
                markdown_table(["output MB (memory MB)"], names, outputs),
                outcome_of_targets(check_targets(self.figures)),
            ]
        )

    def lakes_as_markdown(self) -> str:
        """MB of each lake by its writer, and milliseconds of the five queries together by engine and writer."""
        sizes, queries = [], []
        for shape, lake in self.lakes.items():
            found = (lake["ndjson_bytes"], *map(lake["bytes"].__getitem__, WRITERS))
            sizes.append((shape, *(f"{size / 1e6:.1f}" for size in found)))
            for engine, seconds in lake["seconds"].items():
                sums = (sum(of_query[writer] for of_query in seconds.values()) for writer in WRITERS)
                queries.append((f"{shape}, {engine}", *(f"{1000 * total:.0f}" for total in sums)))
        return join_sections(
            [
                self._about({}),
                markdown_table(["lake, MB"], ["NDJSON", *WRITERS], sizes),
                markdown_table(["ms of five queries on the lake of"], WRITERS, queries),
                outcome_of_targets(check_lakes(self.lakes)),
            ]
        )

    def _about(self, ndjson_bytes: Mapping[str, int]) -> list[str]:
        versions = ", ".join(f"{package} {version(package)}" for package in PACKAGES)
        sizes = ", ".join(f"{shape} {size / 1e6:.0f}" for shape, size in ndjson_bytes.items())
        return [
            f"Measured on {self.started:%Y-%m-%d}, {self.cores} cores of {_cpu()}, {platform.system()}, "
            f"Python {platform.python_version()}, {versions}.",
            f"Medians of {self.rounds} rounds.",
            *([f"MB of NDJSON: {sizes}."] if sizes else []),
            *(
                [f"Load average before the start: {self.load:.1f}. Other processes used the machine."]
                if self.load > BUSY_LOAD
                else []
            ),
        ]


def _cpu() -> str:
    lines = CPU_INFO.read_text().splitlines()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), platform.machine())
