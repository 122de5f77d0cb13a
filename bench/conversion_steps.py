"""The steps of the conversion, each measured alone: one thread, no Spark, input in memory, output to a file."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import TypeVar

from ndjson_arrow import Batch, ParquetFile, Reader

from lake.settings import ConvertSettings
from transform.run_task import BATCH_BYTES, PIECE_BYTES

COMPRESSIONS = ("none", "snappy", "zstd")
_T = TypeVar("_T")


def columns(texts: list[bytes]) -> Iterator[Batch]:
    """The rows of these texts as batches of columns, read as a task reads them."""
    reader = Reader(flush_bytes=BATCH_BYTES)
    for text in texts:
        reader.open("text")
        for start in range(0, len(text), PIECE_BYTES):
            reader.feed(memoryview(text)[start : start + PIECE_BYTES])
            yield from iter(reader.read, None)
        reader.end_of_input()
        yield from iter(reader.read, None)
        reader.close()
    if (batch := reader.flush()) is not None:
        yield batch


def write(batches: list[Batch], path: Path, compression: str) -> None:
    """Write one file with row groups as the conversion does; afterwards the batches are empty."""
    file = ParquetFile(path, compression=compression)
    row_group_bytes = ConvertSettings().row_group_bytes
    for batch in batches:
        file.write(batch)
        if file.row_group_bytes >= row_group_bytes:
            file.end_row_group()
    file.close()


def measure_steps(files: list[Path], scratch: Path) -> dict[str, float]:
    """Seconds of each step for all files together.

    For gzip files only decompressing and parsing, as one step: the other steps do not depend on the compression.
    """
    texts = [path.read_bytes() for path in files]

    def parse() -> list[Batch]:
        return list(columns(texts))

    def count(texts: list[bytes]) -> int:
        return sum(batch.rows for batch in columns(texts))

    if files[0].suffix == ".gz":
        return {"inflate_parse_columns": _seconds(count, lambda: texts)}
    seconds = {
        "read": _seconds(lambda paths: sum(len(path.read_bytes()) for path in paths), lambda: files),
        "parse_columns": _seconds(count, lambda: texts),
    }
    for compression in COMPRESSIONS:
        work = partial(write, path=scratch / "step.parquet", compression=compression)
        seconds[f"write_{compression}"] = _seconds(work, parse)
    (scratch / "step.parquet").unlink()
    return seconds


def _seconds(work: Callable[[_T], object], prepare: Callable[[], _T]) -> float:
    """Of the second run: the first one also waits for memory. The time of ``prepare`` does not count."""
    work(prepare())
    prepared = prepare()
    started = time.perf_counter()
    work(prepared)
    return time.perf_counter() - started
