"""One measured conversion."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

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
