"""The results of one run of the benchmark, for machines and for people."""

from __future__ import annotations

import platform
from dataclasses import asdict, dataclass
from datetime import datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from bench.competitors import COMPETITORS
from bench.figure import Figure
from bench.markdown_tables import (
    join_sections,
    lake_queries_table,
    lake_sizes_table,
    outcome_of_targets,
    output_table,
    speed_table,
)
from bench.targets import check_lakes, check_targets

CPU_INFO = Path("/proc/cpuinfo")
PACKAGES = ("pyspark", "pyarrow", "duckdb", "polars")
BUSY_LOAD = 0.5
"""A load average above this before the start means that other processes used the machine."""


@dataclass(frozen=True, slots=True)
class Results:
    """Figures, and the circumstances under which they were measured."""

    figures: list[Figure]
    lakes: dict[str, dict[str, Any]]
    """What ``bench.lake_queries.measure_lakes`` returns, by shape."""
    sizes: dict[str, int]
    """NDJSON bytes by shape."""
    rounds: int
    started: datetime
    load: float
    """The machine's load average of the last minute before the start."""
    cores: int

    def as_json(self) -> dict[str, object]:
        """The contents of results.json."""
        return {
            "about": self._about(),
            "load_before": self.load,
            "ndjson_bytes": self.sizes,
            "figures": [asdict(figure) for figure in self.figures],
            "lakes": self.lakes,
            "targets": [asdict(target) for target in (*check_targets(self.figures), *check_lakes(self.lakes))],
        }

    def as_markdown(self) -> str:
        """For people: all tables."""
        return join_sections(
            [
                self._about(),
                [f"- `{competitor.name}`: {competitor.description}" for competitor in COMPETITORS],
                speed_table(self.figures),
                output_table(self.figures),
                outcome_of_targets(check_targets(self.figures)),
            ]
        )

    def lakes_as_markdown(self) -> str:
        """For people: sizes and queries of the lakes."""
        return join_sections(
            [
                self._about(),
                lake_sizes_table(self.lakes),
                lake_queries_table(self.lakes),
                outcome_of_targets(check_lakes(self.lakes)),
            ]
        )

    def _about(self) -> list[str]:
        versions = ", ".join(f"{package} {version(package)}" for package in PACKAGES)
        sizes = ", ".join(f"{shape} {size / 1e6:.0f}" for shape, size in self.sizes.items())
        return [
            f"Measured on {self.started:%Y-%m-%d}, {self.cores} cores of {_cpu()}, {platform.system()}, "
            f"Python {platform.python_version()}, {versions}.",
            f"Medians of {self.rounds} rounds{f'; MB of NDJSON: {sizes}' if sizes else ''}.",
            *(
                [f"Load average before the start: {self.load:.1f}. Other processes used the machine."]
                if self.load > BUSY_LOAD
                else []
            ),
        ]


def _cpu() -> str:
    if not CPU_INFO.exists():
        return platform.machine()
    lines = CPU_INFO.read_text().splitlines()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), platform.machine())
