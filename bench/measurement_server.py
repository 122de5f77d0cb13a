"""The program of a measuring process: reads requests, writes responses, both as lines of JSON; logs go to stderr."""

from __future__ import annotations

import json
import os
import shutil
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from bench.input_files import InputFiles

Convert = Callable[[InputFiles, Path], int | None]
"""Converts files into Parquet under a folder; returns its peak resident memory in bytes, None if it is not measured."""


@dataclass(frozen=True, slots=True)
class Measurement:
    """What one competitor took for one shape, and what it wrote."""

    seconds: float
    output_bytes: int
    output_files: int
    peak_bytes: int | None
    """Peak resident memory: of a task's Python worker, or of the whole process of a competitor without tasks."""


class WrongRowsError(Exception):
    """A competitor lost or duplicated rows: its speed means nothing."""


def measure_conversion(convert: Convert, files: InputFiles, output: Path, *, check: bool = True) -> Measurement:
    """Run ``convert`` into the new folder ``output``, read the sizes of what it wrote, and remove the folder.

    Only ``convert`` is timed.
    """
    output.mkdir(parents=True)
    started = time.perf_counter()
    peak = convert(files, output)
    seconds = time.perf_counter() - started
    written = [path for path in output.rglob("*.parquet") if path.is_file()]
    rows = sum(pq.read_metadata(path).num_rows for path in written)
    size = sum(path.stat().st_size for path in written)
    shutil.rmtree(output)
    if check and rows != files.rows:
        raise WrongRowsError(f"{files.shape}: {rows} rows were written, the input has {files.rows}")
    return Measurement(seconds, size, len(written), peak)


def spark_methods(cores: int, scratch: Path) -> dict[str, Convert]:
    """The competitors that run in one Spark session with the given cores."""
    from bench.product_competitor import convert_by_spark  # noqa: PLC0415
    from bench.spark_competitors import naive, one_pass, open_session  # noqa: PLC0415
    from lake.settings import ConvertSettings  # noqa: PLC0415

    session = open_session(cores, scratch)
    return {
        "hybrid_router": partial(convert_by_spark, session.sparkContext, ConvertSettings()),
        "one_pass": partial(one_pass, session),
        "naive": partial(naive, session),
    }


def library_methods(threads: int) -> dict[str, Convert]:
    """The competitors that run in this process with the given threads, or start as many processes."""
    from bench.library_competitors import convert_by_duckdb, convert_by_polars  # noqa: PLC0415
    from bench.offline_competitor import convert_offline  # noqa: PLC0415

    return {
        "convert": partial(convert_offline, cores=threads),
        "duckdb": partial(convert_by_duckdb, threads=threads),
        "polars": partial(convert_by_polars, threads=threads),
    }


def respond(methods: dict[str, Convert], request: dict[str, Any], scratch: Path) -> dict[str, Any]:
    """Measure what one request names: a competitor's method, or ``lakes``."""
    files = InputFiles.from_dict(request["files"])
    if request["method"] == "lakes":
        from bench.lake_queries import measure_lakes  # noqa: PLC0415

        return measure_lakes(files, scratch / "lakes", request["threads"], request["rounds"])
    return asdict(measure_conversion(methods[request["method"]], files, scratch / "output", check=request["check"]))


def main(kind: str, cores: int, scratch: Path) -> None:
    """Serve requests until the end of the input."""
    # Spark's JVM and libraries write to the standard output: responses get a descriptor of their own.
    responses = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    scratch.mkdir(parents=True, exist_ok=True)
    methods = spark_methods(cores, scratch) if kind == "spark" else library_methods(cores)
    print(json.dumps({"ready": True}), file=responses, flush=True)
    for line in sys.stdin:
        print(json.dumps(respond(methods, json.loads(line), scratch)), file=responses, flush=True)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), Path(sys.argv[3]))
