"""One measured conversion, and how much memory it took."""

from __future__ import annotations

import resource
import shutil
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.parquet as pq

if TYPE_CHECKING:
    from collections.abc import Callable

    from bench.input_files import Data

STATUS = Path("/proc/self/status")
CLEAR_PEAK = Path("/proc/self/clear_refs")


@dataclass(frozen=True, slots=True)
class Measure:
    """What one way did with one shape."""

    seconds: float
    output_bytes: int
    output_files: int
    peak_bytes: int | None
    """Resident memory at its highest: of a task's Python worker, or of the whole process of a way without tasks."""


class WrongRowsError(Exception):
    """A way lost or doubled rows: its speed is of no interest."""


def timed(convert: Callable[[Data, Path], int | None], data: Data, output: Path, *, check: bool = True) -> Measure:
    """Run ``convert`` into the new folder ``output``, look at what it wrote, and remove it; only it is timed.

    ``convert`` answers its peak memory in bytes.
    """
    output.mkdir(parents=True)
    started = time.perf_counter()
    peak = convert(data, output)
    seconds = time.perf_counter() - started
    files = [path for path in output.rglob("*.parquet") if path.is_file()]
    rows = sum(pq.read_metadata(path).num_rows for path in files)
    size = sum(path.stat().st_size for path in files)
    shutil.rmtree(output)
    if check and rows != data.rows:
        raise WrongRowsError(f"{data.shape}: {rows} rows were written, {data.rows} are in the data")
    return Measure(seconds, size, len(files), peak)


def forget_peak() -> None:
    """Begin anew with the highest resident memory of this process, where the system can (Linux)."""
    if CLEAR_PEAK.exists():
        CLEAR_PEAK.write_text("5")


def peak_bytes() -> int:
    """The highest resident memory of this process since ``forget_peak``."""
    if STATUS.exists():
        line = next(line for line in STATUS.read_text().splitlines() if line.startswith("VmHWM:"))
        return int(line.split()[1]) * 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
