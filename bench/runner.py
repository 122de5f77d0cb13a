"""Runs all measurements: all competitors on all shapes, interleaved round by round."""

from __future__ import annotations

import mmap
import os
import shutil
import sys
from collections import defaultdict
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import Any, Self

from bench.figure import COMPETITORS, MAIN_SHAPES, SLOWEST, Competitor, Figure
from bench.input_files import InputFiles
from bench.measuring_process import CHECKOUT, MeasuringProcess

WARM_UP_FILES_PER_CORE = 2


def start_process(kind: str, cores: int, scratch: Path) -> MeasuringProcess:
    """A measuring process for competitors of one kind; its files are under ``scratch``, its log is next to it."""
    environment = {
        **os.environ,
        "PYTHONPATH": str(CHECKOUT),
        "PYSPARK_PYTHON": sys.executable,
        "POLARS_MAX_THREADS": str(cores),
    }
    command = [sys.executable, "-m", "bench.measurement_server", kind, str(cores), str(scratch)]
    return MeasuringProcess(command, environment, scratch.with_suffix(".log"))


class BenchmarkRunner:
    """A context manager: its Spark processes run inside the block; after it, all measuring processes have ended."""

    def __init__(self, scratch: Path, log: Callable[[str], None]) -> None:
        self._scratch = scratch
        self._log = log
        self._stack = ExitStack()
        self._spark: dict[int, MeasuringProcess] = {}

    def __enter__(self) -> Self:
        if self._scratch.exists():
            shutil.rmtree(self._scratch)
        self._scratch.mkdir(parents=True)
        with ExitStack() as stack:
            for cores in sorted({competitor.cores for competitor in COMPETITORS if competitor.kind == "spark"}):
                process = start_process("spark", cores, self._scratch / f"spark-{cores}")
                self._spark[cores] = stack.enter_context(process)
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def measure_shape(self, files: InputFiles, rounds: int) -> list[Figure]:
        """The figures of all competitors."""
        measurements: dict[str, list[dict[str, Any]]] = defaultdict(list)
        for number in range(rounds):
            start = number % len(COMPETITORS)
            for competitor in (*COMPETITORS[start:], *COMPETITORS[:start]):
                if number == 0 or competitor.name != SLOWEST or files.shape in MAIN_SHAPES:
                    measurements[competitor.name].append(self._measure(competitor, files))
            self._log(f"{files.shape}, round {number + 1} of {rounds}")
        return [Figure.of(competitor, files, measurements[competitor.name]) for competitor in COMPETITORS]

    def measure_lakes(self, files: InputFiles, rounds: int) -> dict[str, Any]:
        """Sizes and query times of the lakes of one shape, as ``bench.lake_queries.measure_lakes`` returns them."""
        process, threads = self._spark[max(self._spark)], max(self._spark)
        fields = {"method": "lakes", "files": asdict(files), "threads": threads, "rounds": rounds}
        return process.request(fields)

    def _measure(self, competitor: Competitor, files: InputFiles) -> dict[str, Any]:
        # Into the page cache: the system may have dropped files that no process has read for a while.
        for path in files.paths:
            path.read_bytes()
        if competitor.kind == "spark":
            return measure_warm(self._spark[competitor.cores], competitor, files)
        with start_process(competitor.kind, competitor.cores, self._scratch / competitor.name) as process:
            return measure_warm(process, competitor, files)


def _request(process: MeasuringProcess, method: str, files: InputFiles, *, check: bool = True) -> dict[str, Any]:
    return process.request({"method": method, "files": asdict(files), "check": check})


def measure_warm(process: MeasuringProcess, competitor: Competitor, files: InputFiles) -> dict[str, Any]:
    """Convert the first files unmeasured, then measure.

    The compilers have then seen this kind of data. Threads and Python workers have been started (Spark ends workers
    that were idle for a minute) and have their memory. A job that runs for an hour pays for all of this once.
    """
    warm_up = files.first_files(WARM_UP_FILES_PER_CORE * competitor.cores)
    _request(process, competitor.method, warm_up, check=False)
    _touch_memory(files.bytes // 2)
    return _request(process, competitor.method, files)


def _touch_memory(size: int) -> None:
    """Use ``size`` bytes of memory once and free them: more than the output, which goes to the page cache.

    A virtual machine gives free memory back to its host. The first process that uses it again waits for the host page
    by page, ten times as long as for memory that the machine still has: half a second for the output of a large shape.
    """
    with mmap.mmap(-1, size) as memory:
        for page in range(0, size, mmap.PAGESIZE):
            memory[page] = 1
