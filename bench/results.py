"""Everything one run of the benchmark has found, for machines and for people."""

from __future__ import annotations

import platform
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

from bench.markdown_tables import dollar_table, goal_table, output_table, parts_table, speed_table, whole
from bench.runner import WAYS
from bench.targets import goals
from lake.settings import PriceSettings

if TYPE_CHECKING:
    from datetime import datetime

    from bench.runner import Figure

CPU_INFO = Path("/proc/cpuinfo")
PACKAGES = ("pyspark", "pyarrow", "duckdb", "polars")
BUSY = 0.5
"""A load average above this before the start: others were using the machine."""


@dataclass(frozen=True, slots=True)
class Results:
    """Medians, and under what circumstances they were measured."""

    figures: list[Figure]
    parts: dict[str, dict[str, float]]
    """MB/s by shape and part."""
    sizes: dict[str, int]
    """NDJSON bytes by shape."""
    rounds: int
    started: datetime
    load: float
    """The machine's load average of the last minute before the start."""
    cores: int

    def as_json(self) -> dict[str, object]:
        """For machines."""
        return {
            "about": self._about(),
            "load_before": self.load,
            "ndjson_bytes": self.sizes,
            "figures": [asdict(figure) for figure in self.figures],
            "parts_mb_per_second": self.parts,
            "goals": [asdict(goal) for goal in goals(self.figures)],
        }

    def as_text(self) -> str:
        """For people: Markdown."""
        return whole(
            [
                self._about(),
                [f"- `{way.name}`: {way.about}" for way in WAYS],
                speed_table(self.figures),
                output_table(self.figures),
                parts_table(self.parts),
                goal_table(goals(self.figures)),
                dollar_table(self.figures, PriceSettings()),
            ]
        )

    def _about(self) -> list[str]:
        versions = ", ".join(f"{package} {version(package)}" for package in PACKAGES)
        sizes = ", ".join(f"{shape} {size / 1e6:.0f}" for shape, size in self.sizes.items())
        return [
            f"Measured on {self.started:%Y-%m-%d}, {self.cores} cores of {_cpu()}, {platform.system()}, "
            f"Python {platform.python_version()}, {versions}.",
            f"Medians of {self.rounds} rounds; MB of NDJSON: {sizes}.",
            *(
                [f"Load average before the start: {self.load:.1f}; others used the machine."]
                if self.load > BUSY
                else []
            ),
        ]


def _cpu() -> str:
    if not CPU_INFO.exists():
        return platform.machine()
    lines = CPU_INFO.read_text().splitlines()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), platform.machine())
