"""pyarrow, DuckDB, Polars and Spark read the same rows from files with different columns."""

import json
import random
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from ndjson_arrow import Batch, Reader
from pyspark.sql import SparkSession

from lake.settings import ConvertSettings
from tests.integration.conversion_world import ConversionWorld
from tests.oracle import ndjson_oracle
from transform.parquet_writer import ParquetFiles

Rows = list[tuple[tuple[str, str], ...]]


def columns(texts: list[bytes]) -> Iterator[Batch]:
    """The rows of these texts as batches of columns."""
    reader = Reader()
    for text in texts:
        reader.open("text")
        reader.feed(text)
        yield from iter(reader.read, None)
        reader.end_of_input()
        yield from iter(reader.read, None)
        reader.close()
    if (batch := reader.flush()) is not None:
        yield batch


FIRST = b"""{"id":1,"price":1.10,"tags":["x", "y"],"who":{"name" :"\\u00fc"}}
{"id":1E400,"price":null,"emoji":"\xf0\x9f\x98\x80","empty":""}
"""
SECOND = b"""{"id":"003","Price":-0.0,"date":"2026-03-04","line":"a\\nb\\u0000c"}
{"brand new":true,"id":12345678901234567890123}
{}
"""


def drifting(rows: int) -> bytes:
    """More than a page of values and of NULLs, in columns most of which begin and end within the file."""
    chance = random.Random(1)
    lines = []
    for row in range(rows):
        record: dict[str, Any] = {
            "id": f"{row}-{chance.randrange(1 << 100):x}",
            f"k{row * 10 // rows}": chance.random(),
        }
        if row % 3 == 0:
            record["text"] = "ü" * chance.randrange(90)
        lines.append(json.dumps(record).encode())
    return b"\n".join(lines)


THIRD = drifting(40_000)


def repeated(rows: int) -> bytes:
    """Columns that begin with a dictionary: some keep it, some overflow, by number of values or by bytes."""
    lines = []
    for row in range(rows):
        record = {
            "level": ("INFO", "WARN", "")[row * 7 % 3],
            "host": f"host-{row * 7919 % 1501}",
            "grows": f"user {row % 900 if row < rows // 2 else row}",
            "rare": "only" if row % 5000 == 17 else None,
            "long": "x" * (60_000 if row % 997 == 0 else 3) + str(row % 11),
        }
        lines.append(json.dumps(record).encode())
    return b"\n".join(lines)


REPEATED = repeated(70_000)
BODIES = (FIRST, SECOND, THIRD, REPEATED)


def rows_of(names: Iterable[str], values: Iterable[Iterable[Any]]) -> Rows:
    """Rows without their NULLs, sorted."""
    names = list(names)
    present = (
        tuple((name, value) for name, value in sorted(zip(names, row, strict=True)) if value is not None)
        for row in values
    )
    return sorted(present)


def by_pyarrow(paths: list[str], _: SparkSession) -> Rows:
    table = pa.concat_tables([pq.read_table(path, partitioning=None) for path in paths], promote_options="default")
    return rows_of(table.column_names, zip(*(column.to_pylist() for column in table.columns), strict=True))


def by_duckdb(paths: list[str], _: SparkSession) -> Rows:
    with duckdb.connect() as connection:
        relation = connection.read_parquet(paths, union_by_name=True, hive_partitioning=False)
        return rows_of(relation.columns, relation.fetchall())


def by_polars(paths: list[str], _: SparkSession) -> Rows:
    frame = pl.concat([pl.read_parquet(path, hive_partitioning=False) for path in paths], how="diagonal")
    return rows_of(frame.columns, frame.rows())


def by_spark(paths: list[str], spark: SparkSession) -> Rows:
    frame = spark.read.option("mergeSchema", "true").parquet(*[f"file://{path}" for path in paths])
    return rows_of(frame.columns, frame.collect())


@pytest.fixture
def lake(world: ConversionWorld, spark: SparkSession, tmp_path: Path) -> list[str]:
    """Published objects with different columns and encodings, one of them with many row groups, as local files."""
    for number, body in enumerate(BODIES):
        world.configure("convert", row_group_bytes=1 << 19 if body is THIRD else 4 << 20)
        manifest = world.enqueue([world.put(f"orders/{number}.ndjson", body)])
        (outcome,) = world.convert([manifest], spark)
        assert outcome.state == "DONE"
    bucket = world.services.resources.lake_bucket
    paths = []
    for key in world.keys(bucket):
        path = tmp_path / key.rsplit("/", 1)[1]
        world.services.s3.download_file(bucket, key, str(path))
        paths.append(str(path))
    assert len({tuple(pq.read_schema(path).names) for path in paths}) == len(BODIES)
    assert max(pq.read_metadata(path).num_row_groups for path in paths) > 3
    return paths


@pytest.mark.parametrize("read", [by_pyarrow, by_duckdb, by_polars, by_spark])
def test_every_reader_sees_the_same_rows(
    lake: list[str], spark: SparkSession, read: Callable[[list[str], SparkSession], Rows]
) -> None:
    rows = [row for body in BODIES for _, row in ndjson_oracle.read(body).rows]
    assert read(lake, spark) == sorted(tuple(sorted(row.items())) for row in rows)


def test_rows_are_found_by_the_bounds_of_their_pages(spark: SparkSession, tmp_path: Path) -> None:
    # Given one row group with several pages in each column, sorted and not, with a dictionary, without and with both
    paths: list[str] = []
    files = ParquetFiles(tmp_path, ConvertSettings(), lambda path, _: paths.append(str(path)))
    lines = [
        json.dumps({**json.loads(line), "time": f"{row // 7:06}"}) for row, line in enumerate(REPEATED.splitlines())
    ]
    for batch in columns(["\n".join(lines).encode()]):
        files.write(batch)
    files.close()
    (path,) = paths
    metadata = pq.read_metadata(path)
    assert metadata.num_row_groups == 1
    chunks = [metadata.row_group(0).column(index) for index in range(metadata.num_columns)]
    assert all(chunk.has_offset_index for chunk in chunks)
    with_values = [
        chunk for chunk in chunks if chunk.statistics and (chunk.statistics.null_count or 0) < metadata.num_rows
    ]
    assert all(chunk.has_column_index for chunk in with_values)
    for name, value in [
        ("time", "003000"),
        ("host", "host-1500"),
        ("grows", "user 69999"),
        ("rare", "only"),
        ("level", ""),
        ("time", "x"),
    ]:
        for sign in ("=", "<", ">="):
            condition = f"{name} {sign} '{value}'"
            # When the condition is evaluated by the bounds, and for every row
            with duckdb.connect() as connection:
                by_duckdb = connection.sql(f"SELECT count(*) FROM '{path}' WHERE {condition}").fetchall()
                every = (
                    f"SELECT count(*) FROM '{path}' WHERE concat({name}, '') {sign} '{value}' AND {name} IS NOT NULL"
                )
                ((expected,),) = connection.sql(every).fetchall()
            frame = spark.read.parquet(f"file://{path}").where(condition)
            by_spark = len(frame.select("_rescued", name, "long").collect())
            by_pyarrow = pq.read_table(path, filters=[(name, sign, value)]).num_rows  # type: ignore[list-item]
            by_polars = pl.scan_parquet(path).sql(f"SELECT * FROM self WHERE {condition}").collect().height
            # Then no row is lost
            assert [by_duckdb, by_spark, by_pyarrow, by_polars] == [[(expected,)], *[expected] * 3], condition
