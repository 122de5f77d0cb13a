"""Differential fuzzing of the native Parquet writer against pyarrow's, with pyarrow, Polars and DuckDB as readers."""

import base64
import json
import random
import tempfile
from functools import cache
from pathlib import Path
from typing import Any, Literal

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
from ndjson_arrow import Batch, ParquetFile

from tests.unit.native.reader_driver import batches_of

MAX_BOUND_BYTES = 64
MANY_ROWS_SHARE = 0.05
"""Share of the inputs with up to 300,000 rows."""
COMPRESSIONS: tuple[Literal["zstd", "snappy", "none"], ...] = ("zstd", "snappy", "none")
MAX_BATCHES = 1000
"""Each can end a row group: DuckDB needs gigabytes and minutes for a file of ten thousand."""
TEXTS = ["", "a", "ä", "\0", "\x7f", "ÿ", "😀", "x" * 15, "y" * 16, "z" * 17, "long " * 800]


def make_input(rng: random.Random) -> bytes:
    """Rows of up to 40 keys, each with its own probability, first row and kind of values; or many rows of few keys."""
    if rng.random() < MANY_ROWS_SHARE:
        return _many_rows(rng)
    keys = [
        (f"k{number}", rng.choice([0.0, 0.01, 0.5, 0.99, 1.0]), rng.choice(["same", "short", "any", "number"]))
        for number in range(rng.choice([1, 3, 40]))
    ]
    count = rng.choice([1, 2, 63, 64, 65, 500, 3000])
    first_row = {key: rng.choice([0, 0, count // 2, count - 1]) for key, *_ in keys}
    rows = (
        {
            key: _value(kind, rng)
            for key, probability, kind in keys
            if row >= first_row[key] and rng.random() < probability
        }
        for row in range(count)
    )
    return b"".join(json.dumps(row, ensure_ascii=False).encode() + b"\n" for row in rows)


def _many_rows(rng: random.Random) -> bytes:
    """Columns that begin with a dictionary: repeated, rotating, ascending, with more values later, late, empty.

    Their gaps are NULL or empty.
    """
    count = rng.choice([5_000, 70_000, 300_000])
    columns = []
    for number in range(rng.randrange(1, 5)):
        distinct = rng.choice([1, 2, 300, 1500, 1501, 32_768, 32_769])
        overflow = rng.choice([count, count, count - 1, rng.randrange(count)])
        columns.append(
            (
                number,
                distinct,
                overflow,
                rng.choice(["random", "turn", "ascending"]),
                rng.choice([1, 1, 3, 4999]),
                rng.choice([0, 0, 0, count // 2, count - 1, count]),
                rng.choice(["", "", "", f'"k{number}":""', f'"k{number}":null']),
            )
        )
    lines = []
    for row in range(count):
        members = []
        for number, distinct, overflow, order, step, first, gap in columns:
            if row < first or row % step:
                if gap:
                    members.append(gap)
                continue
            drawn = rng.randrange(distinct) if order == "random" else row % distinct if order == "turn" else row // 3
            members.append(f'"k{number}":"{f"new {row}" if row >= overflow else drawn}"')
        lines.append("{" + ",".join(members) + "}\n")
    return "".join(lines).encode()


def _value(kind: str, rng: random.Random) -> str | int | None:
    if kind == "same":
        return "2026-03-17T00:00:00Z"
    if kind == "number":
        return rng.choice([rng.randrange(10), rng.randrange(1 << 60), None])
    if kind == "short":
        return rng.choice(TEXTS[:-1])
    return rng.choice(TEXTS) + str(rng.randrange(1000))


def compare(data: bytes, rng: random.Random) -> None:
    """Raises AssertionError if a reader finds other columns than pyarrow wrote, or the footer has wrong bounds."""
    flush_bytes = max(rng.choice([100, 10_000, 8 << 20]), len(data) // MAX_BATCHES)
    options = {"flush_bytes": flush_bytes, "known_columns": rng.choice([(), ("k3", "never", "k0")])}
    compression = rng.choice(COMPRESSIONS)
    with tempfile.TemporaryDirectory() as folder:
        native, reference = Path(folder) / "native.parquet", Path(folder) / "reference.parquet"
        expected = _arrow_table(list(batches_of([data], **options)))
        file = ParquetFile(native, compression=compression)
        for batch in batches_of([data], **options):
            file.write(batch)
            if rng.random() < 0.3:
                file.end_row_group()
        file.close({"ARROW:schema": base64.b64encode(expected.schema.serialize()).decode()})
        pq.write_table(expected, reference, compression=compression, use_dictionary=False)
        assert pq.read_table(native).equals(pq.read_table(reference), check_metadata=True)
        _check_bounds(native, reference)
        frame = pl.from_arrow(expected)
        assert isinstance(frame, pl.DataFrame)
        assert pl.read_parquet(native).equals(frame)
        read = _database().read_parquet(str(native)).to_arrow_table()
        assert read.equals(expected.cast(read.schema))


@cache
def _database() -> duckdb.DuckDBPyConnection:
    """One database for all rounds: creating one takes longer than reading a file."""
    return duckdb.connect()


def _arrow_table(batches: list[Batch]) -> pa.Table:
    tables = [
        pa.table([pa.array(batch.column(index), pa.string()) for index in range(len(batch.names))], names=batch.names)
        for batch in batches
    ]
    table = pa.concat_tables(tables, promote_options="default")
    # The writer leaves out a column without values.
    has_value = [name for name in batches[-1].names if table.column(name).null_count < table.num_rows]
    return table.select([name for name in batches[-1].names if name == "_rescued" or name in has_value])


def _check_bounds(native: Path, reference: Path) -> None:
    """Compare footers: the NULL counts are equal; the bounds are pyarrow's, or are shorter and enclose them."""
    for found, expected in zip(_bounds(native), _bounds(reference), strict=True):
        assert found[2] == expected[2]
        if expected[0] is None:
            assert found[:2] == expected[:2]
            continue
        assert all(len(bound.encode()) <= MAX_BOUND_BYTES for bound in found[:2])
        assert found[0] == expected[0].encode()[:MAX_BOUND_BYTES].decode(errors="ignore")
        assert found[1] >= expected[1]
        assert len(expected[1].encode()) > MAX_BOUND_BYTES or found[1] == expected[1]


def _bounds(path: Path) -> list[tuple[Any, Any, int]]:
    """For each column of the whole file: minimum and maximum in the footer, and the number of NULLs."""
    metadata = pq.read_metadata(path)
    columns = []
    for index in range(metadata.num_columns):
        groups = range(metadata.num_row_groups)
        chunks: list[Any] = [metadata.row_group(group).column(index).statistics for group in groups]
        minimum = min((chunk.min for chunk in chunks if chunk.has_min_max), default=None)
        maximum = max((chunk.max for chunk in chunks if chunk.has_min_max), default=None)
        columns.append((minimum, maximum, sum(chunk.null_count for chunk in chunks)))
    return columns
