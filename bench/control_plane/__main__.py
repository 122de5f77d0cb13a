"""``make bench-plan``: every function on every night, each in its own process, and their targets."""

import argparse
import os
import sys
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from multiprocessing import get_context
from pathlib import Path
from typing import NamedTuple

from bench.control_plane.measure import measure
from bench.control_plane.night import COLUMNS, MAX_LISTED_FILES, NIGHTS
from bench.control_plane.stand_in import READ_SECONDS, WRITE_SECONDS, StandIn
from infra.functions import SPECS
from scripts.markdown_page import markdown_table, replace_between

CHECKOUT = Path(__file__).resolve().parents[2]
DOCUMENT = CHECKOUT / "docs" / "performance.md"
BEGIN_MARKER = "<!-- control plane: written by make bench-plan -->"
END_MARKER = "<!-- end of control plane -->"
FUNCTIONS = ("divide", "sweep", "plan", "run_status", "catalog", "backfill", "hours", "settle")
"""In this order: each function finds the results of the previous ones."""
PUBLISHED_BEFORE = ("hours", "settle")
"""Functions before which manifests are set DONE: those of the last hour for ``hours``, all for ``settle``."""
MAX_DATASETS_OF_OTHERS = 10
"""With more datasets only the functions with a target are measured."""
MIB = 1 << 20


class Target(NamedTuple):
    """Limits of a function that differ from the deployed function's limits."""

    seconds: int
    mib: int
    of_processor: bool = False
    """Whether the limit applies to processor time."""


TARGETS = {
    "divide": Target(10, 150, of_processor=True),
    "plan": Target(60, 256),
    "hours": Target(600, 512),
    "settle": Target(120, 512),
}
"""``divide`` divides an hour of 200,000 files; ``hours`` announces one hour of each dataset."""


@dataclass(frozen=True, slots=True)
class Measured:
    night: str
    function: str
    seconds: float
    cpu_seconds: float
    peak_bytes: int
    requests: dict[str, int]
    index_writes_per_second: int
    """Maximum number of writes a second to one partition key of the index."""

    @property
    def target(self) -> Target:
        """The entry of ``TARGETS``, or timeout and memory (at most 512 MiB) of the function that the stack deploys."""
        if self.function in TARGETS:
            return TARGETS[self.function]
        spec = next(spec for spec in SPECS if spec.name == self.function)
        return Target(spec.timeout_seconds, min(spec.memory_mib, 512))

    @property
    def met(self) -> bool:
        """Whether time, memory and writes stay below their limits."""
        seconds = self.cpu_seconds if self.target.of_processor else self.seconds
        is_small = self.peak_bytes <= self.target.mib * MIB
        return seconds <= self.target.seconds and is_small and self.index_writes_per_second < 1000


def main(argv: Sequence[str]) -> int:
    """Measure and print the table; return 1 if a limit is exceeded."""
    parser = argparse.ArgumentParser(prog="python -m bench.control_plane")
    parser.add_argument("nights", nargs="*", metavar="night", help=f"{', '.join(NIGHTS)}; default: all of them")
    parser.add_argument("--functions", nargs="*", choices=FUNCTIONS, default=FUNCTIONS)
    parser.add_argument("--document", action="store_true", help="write the table into docs/performance.md")
    options = parser.parse_args(argv)
    if unknown := set(options.nights) - set(NIGHTS):
        parser.error(f"unknown nights: {', '.join(sorted(unknown))}; choose from {', '.join(NIGHTS)}")
    load = os.getloadavg()[0]
    measured = [item for night in options.nights or NIGHTS for item in measure_night(night, options.functions)]
    text = format_table(measured, load)
    print(text)
    if options.document:
        DOCUMENT.write_text(replace_between(DOCUMENT.read_text(), text, BEGIN_MARKER, END_MARKER))
    return 0 if all(item.met for item in measured) else 1


def measure_night(name: str, functions: Sequence[str]) -> list[Measured]:
    """Measure all functions on one night, one after the other on the same state."""
    measured, night = list[Measured](), NIGHTS[name]
    if night.datasets > MAX_DATASETS_OF_OTHERS:
        functions = [function for function in functions if function in TARGETS]
    with StandIn(night) as stand_in:
        for function in functions:
            if function in PUBLISHED_BEFORE:
                stand_in.publish(night.last_hour if function == "hours" else "")
            with ProcessPoolExecutor(1, get_context("spawn")) as process:
                used = process.submit(measure, function, name, stand_in.endpoint).result()
            measured.append(Measured(name, function, *used, *stand_in.statistics()))
            print(f"[bench-plan] {name} {function}: {measured[-1].seconds:.0f} s", file=sys.stderr, flush=True)
    return measured


def format_table(measured: Sequence[Measured], load: float) -> str:
    about = (
        f"Measured on {datetime.now(UTC):%Y-%m-%d}, {os.cpu_count()} cores, Python {sys.version.split()[0]}. "
        f"Load average before the start: {load:.1f}. {READ_SECONDS * 1000:.0f} ms are added to every read and "
        f"{WRITE_SECONDS * 1000:.0f} ms to every write; datasets have {COLUMNS:,} columns, and the listing "
        f"{MAX_LISTED_FILES:,} files at most."
    )
    names = ("load, datasets", "function")
    numbers = ("seconds", "of processor", "limit", "peak MiB", "limit", "requests", "index writes/s", "result")
    rows = [
        (
            f"{NIGHTS[item.night].name}, {NIGHTS[item.night].datasets:,}",
            f"`{item.function}`",
            f"{item.seconds:.1f}",
            f"{item.cpu_seconds:.1f}",
            f"{item.target.seconds}",
            f"{item.peak_bytes / MIB:.0f}",
            f"{item.target.mib}",
            f"{sum(item.requests.values()):,}",
            f"{item.index_writes_per_second:,}",
            "met" if item.met else "NOT met",
        )
        for item in measured
    ]
    return "\n".join([about, "", *markdown_table(names, numbers, rows)])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
