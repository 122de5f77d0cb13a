"""Differential fuzzing of the native Parquet writer: the same columns written by pyarrow, and read by three readers.

python -m tests.fuzz.fuzz_parquet --seconds 60 --seed 7
"""

import base64
import json
import random
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
from ndjson_arrow import Batch, ParquetFile, Reader

from tests.fuzz.rounds import main

TEXTS = ["", "a", "ä", "\0", "\x7f", "ÿ", "😀", "x" * 15, "y" * 16, "z" * 17, "long " * 800]


def make_input(chance: random.Random) -> bytes:
    """Rows of up to 40 keys, each with its own habits: how often it is there, how long its values are."""
    keys = [
        (f"k{number}", chance.choice([0.0, 0.01, 0.5, 0.99, 1.0]), chance.choice(["same", "short", "any", "number"]))
        for number in range(chance.choice([1, 3, 40]))
    ]
    count = chance.choice([1, 2, 63, 64, 65, 500, 3000])
    # Some keys are only met after some rows.
    begin = {key: chance.choice([0, 0, count // 2, count - 1]) for key, *_ in keys}
    rows = (
        {key: _value(kind, chance) for key, often, kind in keys if row >= begin[key] and chance.random() < often}
        for row in range(count)
    )
    return b"".join(json.dumps(row, ensure_ascii=False).encode() + b"\n" for row in rows)


def _value(kind: str, chance: random.Random) -> str | int | None:
    if kind == "same":
        return "2026-03-17T00:00:00Z"
    if kind == "number":
        return chance.choice([chance.randrange(10), chance.randrange(1 << 60), None])
    if kind == "short":
        return chance.choice(TEXTS[:-1])
    return chance.choice(TEXTS) + str(chance.randrange(1000))


def compare(data: bytes, chance: random.Random) -> None:
    """Raises AssertionError where the readers see other columns, or the footer other bounds, than pyarrow wrote."""
    flush_bytes = chance.choice([100, 10_000, 8 << 20])
    compression = chance.choice(["zstd", "snappy", "none"])
    with tempfile.TemporaryDirectory() as folder:
        ours, safe = Path(folder) / "ours.parquet", Path(folder) / "safe.parquet"
        expected = _arrow_table(list(_batches(data, flush_bytes)))
        file = ParquetFile(ours, compression=compression)
        for batch in _batches(data, flush_bytes):
            file.write(batch)
            if chance.random() < 0.3:
                file.end_row_group()
        file.close({"ARROW:schema": base64.b64encode(expected.schema.serialize()).decode()})
        pq.write_table(expected, safe, compression=compression, use_dictionary=False)
        assert pq.read_table(ours).equals(pq.read_table(safe), check_metadata=True)
        assert _bounds(ours) == _bounds(safe)
        frame = pl.from_arrow(expected)
        assert isinstance(frame, pl.DataFrame)
        assert pl.read_parquet(ours).equals(frame)
        with duckdb.connect() as connection:
            read = connection.read_parquet(str(ours)).to_arrow_table()
            assert read.equals(expected.cast(read.schema))


def _batches(data: bytes, flush_bytes: int) -> Iterator[Batch]:
    reader = Reader(flush_bytes=flush_bytes)
    reader.open("rows")
    reader.feed(data)
    reader.end_of_input()
    yield from iter(reader.read, None)
    reader.close()
    if (last := reader.flush()) is not None:
        yield last


def _arrow_table(batches: list[Batch]) -> pa.Table:
    tables = [
        pa.table([pa.array(batch.column(index)) for index in range(len(batch.names))], names=batch.names)
        for batch in batches
    ]
    return pa.concat_tables(tables, promote_options="default").select(batches[-1].names)


def _bounds(path: Path) -> list[tuple[Any, Any, int]]:
    """Of each column in the whole file: smallest and largest value as the footer tells them, and the NULLs."""
    metadata = pq.read_metadata(path)
    columns = []
    for index in range(metadata.num_columns):
        groups = [metadata.row_group(group).column(index).statistics for group in range(metadata.num_row_groups)]
        told = [group for group in groups if group.has_min_max]
        least, most = min((group.min for group in told), default=None), max((group.max for group in told), default=None)
        columns.append((least, most, sum(group.null_count for group in groups)))
    return columns


if __name__ == "__main__":
    sys.exit(main(sys.modules[__name__]))
