"""All ways over all shapes, interleaved round by round, and the medians."""

from __future__ import annotations

import json
import mmap
import os
import shutil
import statistics
import subprocess
import sys
from collections import defaultdict
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Self

from transform.spark_job import WORKER_ENVIRONMENT

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from bench.data import Data

CHECKOUT = Path(__file__).resolve().parents[1]
MEGABYTE = 1_000_000


@dataclass(frozen=True, slots=True)
class Way:
    """One contestant."""

    name: str
    kind: str
    """``spark`` lives for the whole run, as a job does; every measurement of an ``engine`` is a new process."""
    method: str
    cores: int
    about: str


WAYS = (
    Way("ours", "spark", "ours", 2, "ours, Spark local[2]"),
    Way("ours_1", "spark", "ours", 1, "ours, Spark local[1]"),
    Way("one_pass", "spark", "one_pass", 2, "Spark, one pass, all-string schema given, dictionary off"),
    Way("obvious", "spark", "obvious", 2, "Spark, the obvious job: infer, cast, count, coalesce, write"),
    Way("duckdb", "engine", "duckdb", 2, "DuckDB, 2 threads, columns given"),
    Way("polars", "engine", "polars", 2, "Polars, 2 threads, columns given"),
)
MAIN = ("flat", "nested")
"""Shapes on which ours is compared with every way."""
SLOWEST = "obvious"
"""On other shapes it is measured in the first round only: it takes as long as all the others together."""
PARTS = ("flat", "nested", "gzip")
"""Shapes whose parts are measured alone."""


@dataclass(frozen=True, slots=True)
class Figure:
    """One way on one shape: medians over the rounds."""

    way: str
    shape: str
    cores: int
    seconds: float
    all_seconds: tuple[float, ...]
    mb_per_second: float
    mb_per_second_per_core: float
    output_bytes: int
    output_files: int
    peak_bytes: int | None
    """The highest of all rounds."""


class ChildFailedError(Exception):
    """A measuring process ended without an answer; what it said stands above."""


class Child:
    """A measuring process."""

    def __init__(self, kind: str, cores: int, scratch: Path, settings: Mapping[str, str] | None = None) -> None:
        environment = {
            **os.environ,
            **(settings or {}),
            "PYTHONPATH": str(CHECKOUT),
            "PYSPARK_PYTHON": sys.executable,
            "POLARS_MAX_THREADS": str(cores),
        }
        command = [sys.executable, "-m", "bench.child", kind, str(cores), str(scratch)]
        self._log = scratch.with_suffix(".log")
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, env=environment, text=True
            )
        self._read_answer()

    def ask(self, way: str, data: Data, *, check: bool = True) -> dict[str, Any]:
        """One measurement."""
        request = json.dumps({"way": way, "data": asdict(data), "check": check})
        print(request, file=_pipe(self._process.stdin), flush=True)
        return self._read_answer()

    def _read_answer(self) -> dict[str, Any]:
        line = _pipe(self._process.stdout).readline()
        if not line:
            raise ChildFailedError(f"a measuring process ended, its last words are in {self._log}")
        answer: dict[str, Any] = json.loads(line)
        return answer

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        _pipe(self._process.stdin).close()
        self._process.wait()
        _pipe(self._process.stdout).close()


def _pipe(pipe: IO[str] | None) -> IO[str]:
    assert pipe is not None
    return pipe


class Rounds:
    """Runs all measurements; a context that ends its processes."""

    def __init__(self, scratch: Path, say: Callable[[str], None]) -> None:
        self._scratch = scratch
        self._say = say
        self._stack = ExitStack()
        self._spark: dict[int, Child] = {}

    def __enter__(self) -> Self:
        shutil.rmtree(self._scratch, ignore_errors=True)
        self._scratch.mkdir(parents=True)
        for cores in sorted({way.cores for way in WAYS if way.kind == "spark"}):
            child = Child("spark", cores, self._scratch / f"spark-{cores}")
            self._spark[cores] = self._stack.enter_context(child)
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def shape(self, data: Data, rounds: int) -> tuple[list[Figure], dict[str, float]]:
        """The figures of all ways, and the MB/s of the parts."""
        answers: dict[str, list[dict[str, Any]]] = defaultdict(list)
        parts: dict[str, list[float]] = defaultdict(list)
        for number in range(rounds):
            turn = number % len(WAYS)
            for way in (*WAYS[turn:], *WAYS[:turn]):
                if number == 0 or way.name != SLOWEST or data.shape in MAIN:
                    answers[way.name].append(self._ask(way, data))
            if data.shape in PARTS:
                first = data.first(1)
                with Child("engine", 1, self._scratch / "parts", WORKER_ENVIRONMENT) as child:
                    for name, seconds in child.ask("parts", first).items():
                        parts[name].append(data.bytes / len(data.names) / MEGABYTE / seconds)
            self._say(f"{data.shape}, round {number + 1} of {rounds}")
        figures = [_figure(way, data, answers[way.name]) for way in WAYS]
        return figures, {name: statistics.median(speeds) for name, speeds in parts.items()}

    def _ask(self, way: Way, data: Data) -> dict[str, Any]:
        # Into the page cache: what was not used for a while may be gone from there.
        for path in data.paths:
            path.read_bytes()
        if way.kind == "spark":
            return _warm_answer(self._spark[way.cores], way, data)
        with Child(way.kind, way.cores, self._scratch / way.name) as child:
            return _warm_answer(child, way, data)


def _warm_answer(child: Child, way: Way, data: Data) -> dict[str, Any]:
    """The first files unmeasured, two for each core, then the measurement.

    Compilers have then seen this kind of data, threads and Python workers have been started (Spark ends workers that
    were idle for a minute) and have their memory: a job that runs for an hour does all of this once.
    """
    child.ask(way.method, data.first(2 * way.cores), check=False)
    _take_back_memory(data.bytes // 2)
    return child.ask(way.method, data)


def _take_back_memory(size: int) -> None:
    """Have so many bytes for a moment: more than the output, which every way writes to the page cache.

    A virtual machine gives free memory back to its host. The first to use it again waits for the host page by page,
    ten times as long as for memory that is there: half a second for the output of a large shape.
    """
    with mmap.mmap(-1, size) as memory:
        for page in range(0, size, mmap.PAGESIZE):
            memory[page] = 1


def _figure(way: Way, data: Data, answers: list[dict[str, Any]]) -> Figure:
    seconds = [float(answer["seconds"]) for answer in answers]
    median = statistics.median(seconds)
    speed = data.bytes / MEGABYTE / median
    peaks = [answer["peak_bytes"] for answer in answers if answer["peak_bytes"] is not None]
    return Figure(
        way.name,
        data.shape,
        way.cores,
        median,
        tuple(seconds),
        speed,
        speed / way.cores,
        answers[-1]["output_bytes"],
        answers[-1]["output_files"],
        max(peaks) if peaks else None,
    )
