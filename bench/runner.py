"""Runs all measurements: all competitors on all shapes, interleaved round by round, in separate processes."""

import mmap
import os
import shutil
import statistics
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from bench.competitors import COMPETITORS, MAIN_SHAPES, SLOWEST, Competitor, Convert
from bench.input_files import InputFiles
from bench.lake_queries import measure_lakes

WARM_UP_FILES_PER_CORE = 2
MEGABYTE = 10**6


Measurement = tuple[float, int, int | None]
"""Seconds, bytes of output, and the peak memory as ``Convert`` returns it."""


@dataclass(frozen=True, slots=True)
class Figure:
    """One competitor on one shape: medians over the rounds. A megabyte is 10^6 bytes of inflated NDJSON."""

    competitor: str
    shape: str
    seconds: float
    mb_per_second: float
    mb_per_second_per_core: float
    output_bytes: int
    peak_bytes: int | None
    """The maximum of all rounds; None for competitors whose memory is not measured."""

    @classmethod
    def of(cls, competitor: Competitor, files: InputFiles, measurements: Sequence[Measurement]) -> "Figure":
        seconds, sizes, peaks = zip(*measurements, strict=True)
        median = statistics.median(seconds)
        speed, peak = files.bytes / MEGABYTE / median, max((size for size in peaks if size is not None), default=None)
        return cls(competitor.name, files.shape, median, speed, speed / competitor.cores, sizes[-1], peak)


class BenchmarkRunner:
    """``scratch``: a folder for the files of all processes. ``stack`` ends Spark's processes."""

    def __init__(self, scratch: Path, stack: ExitStack, log: Callable[[str], None]) -> None:
        self._scratch = scratch
        self._log = log
        self._spark = {
            cores: stack.enter_context(measuring_process(cores, scratch / f"spark-{cores}"))
            for cores in sorted({item.cores for item in COMPETITORS if item.in_spark})
        }

    def measure_shape(self, files: InputFiles, rounds: int) -> list[Figure]:
        measurements: dict[str, list[Measurement]] = defaultdict(list)
        for number in range(rounds):
            start = number % len(COMPETITORS)
            for competitor in (*COMPETITORS[start:], *COMPETITORS[:start]):
                if number == 0 or competitor.name != SLOWEST or files.shape in MAIN_SHAPES:
                    measurements[competitor.name].append(self._measure(competitor, files))
            self._log(f"{files.shape}, round {number + 1} of {rounds}")
        return [Figure.of(competitor, files, measurements[competitor.name]) for competitor in COMPETITORS]

    def measure_lakes(self, files: InputFiles, rounds: int) -> dict[str, Any]:
        """Sizes and query times of the lakes of one shape, as ``bench.lake_queries.measure_lakes`` returns them."""
        cores = max(self._spark)
        return self._spark[cores].submit(measure_lakes, files, self._scratch / "lakes", cores, rounds).result()

    def _measure(self, competitor: Competitor, files: InputFiles) -> Measurement:
        # Read into the page cache: the system may have dropped files that no process has read for a while.
        for path in files.paths:
            path.read_bytes()
        if competitor.in_spark:
            return self._measure_warm(self._spark[competitor.cores], competitor, files)
        with measuring_process(competitor.cores, self._scratch / competitor.name) as process:
            return self._measure_warm(process, competitor, files)

    def _measure_warm(self, process: ProcessPoolExecutor, competitor: Competitor, files: InputFiles) -> Measurement:
        """Convert the first files unmeasured, then measure.

        The compilers have then seen this kind of data. Threads and Python workers have been started (Spark ends workers
        that were idle for a minute) and have their memory. A job that runs for an hour pays for all of this once.
        """
        output, cores = self._scratch / f"{competitor.name}-output", competitor.cores
        warm_up = files.first_files(WARM_UP_FILES_PER_CORE * cores)
        process.submit(measure_conversion, competitor.convert, warm_up, output, cores, None).result()
        _touch_memory(files.bytes // 2)
        return process.submit(measure_conversion, competitor.convert, files, output, cores, files.rows).result()


def measuring_process(cores: int, scratch: Path) -> ProcessPoolExecutor:
    """Run one process; its output, such as that of Spark's JVM, goes to a log next to ``scratch``."""
    scratch.mkdir(parents=True, exist_ok=True)
    return ProcessPoolExecutor(1, get_context("spawn"), _begin, (cores, scratch.with_suffix(".log")))


def _begin(cores: int, log: Path) -> None:
    os.environ.update(
        POLARS_MAX_THREADS=str(cores), PYSPARK_PYTHON=sys.executable, PYTHONPATH=os.pathsep.join(sys.path)
    )
    with log.open("ab") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)


def _touch_memory(size: int) -> None:
    """Use ``size`` bytes of memory once and free them: more than the output, which goes to the page cache.

    A virtual machine returns free memory to its host. The first process that uses it again waits for the host page by
    page, ten times as long as for memory that the machine still has: half a second for the output of a large shape.
    """
    with mmap.mmap(-1, size) as memory:
        for page in range(0, size, mmap.PAGESIZE):
            memory[page] = 1


def measure_conversion(
    convert: Convert, files: InputFiles, output: Path, cores: int, expected_rows: int | None
) -> Measurement:
    """Run ``convert`` into the new folder ``output``, read the sizes of what it wrote, and remove the folder.

    Only ``convert`` is timed. Raises ``ValueError`` if it lost or duplicated rows: its speed means nothing.
    """
    output.mkdir(parents=True)
    started = time.perf_counter()
    peak = convert(files, output, cores)
    seconds = time.perf_counter() - started
    written = [path for path in output.rglob("*.parquet") if path.is_file()]
    rows = sum(pq.read_metadata(path).num_rows for path in written)
    size = sum(path.stat().st_size for path in written)
    shutil.rmtree(output)
    if expected_rows not in (None, rows):
        raise ValueError(f"{files.shape}: {rows} rows were written, the input has {expected_rows}")
    return seconds, size, peak
