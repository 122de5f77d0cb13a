"""The conversion's parts alone: one thread, no Spark, input in memory, output to a file."""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa
from ndjson_arrow import Reader

from transform.columns import record_batch
from transform.parquet_writer import open_writer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

CHUNK_BYTES = 8 << 20
FLUSH_BYTES = 64 << 20
COMPRESSIONS = ("none", "snappy", "zstd")


def columns(texts: list[bytes]) -> Iterator[pa.RecordBatch]:
    """The rows of some files, read as a task reads them."""
    reader = Reader(flush_bytes=FLUSH_BYTES)
    for text in texts:
        reader.open("text")
        for start in range(0, len(text), CHUNK_BYTES):
            reader.feed(memoryview(text)[start : start + CHUNK_BYTES])
            yield from _batches(reader)
        reader.end_of_input()
        yield from _batches(reader)
        reader.close()
    if (batch := reader.flush()) is not None:
        yield record_batch(batch, None)


def _batches(reader: Reader) -> Iterator[pa.RecordBatch]:
    while (batch := reader.read()) is not None:
        yield record_batch(batch, None)


def write(batches: list[pa.RecordBatch], path: Path, compression: str) -> None:
    """One file, every batch a row group, as the conversion writes them."""
    with pa.OSFile(str(path), "wb") as sink, open_writer(sink, batches[-1].schema, compression) as writer:
        for batch in batches:
            writer.write_batch(batch, row_group_size=batch.num_rows)


def measure_parts(files: list[Path], scratch: Path) -> dict[str, float]:
    """Seconds of each part for all files together. Of compressed files only reading: the difference is inflating."""
    texts = [path.read_bytes() for path in files]
    if files[0].suffix == ".gz":
        return {"inflate_parse_columns": _seconds(lambda: sum(batch.num_rows for batch in columns(texts)))}
    seconds = {
        "read": _seconds(lambda: sum(len(path.read_bytes()) for path in files)),
        "parse_columns": _seconds(lambda: sum(batch.num_rows for batch in columns(texts))),
    }
    batches = list(columns(texts))
    for compression in COMPRESSIONS:
        seconds[f"write_{compression}"] = _seconds(partial(write, batches, scratch / "part.parquet", compression))
    (scratch / "part.parquet").unlink()
    return seconds


def _seconds(work: Callable[[], object]) -> float:
    """Of the second time: the first one also waits for memory."""
    work()
    started = time.perf_counter()
    work()
    return time.perf_counter() - started
