"""pyarrow, DuckDB, Polars and Spark find rows by the bounds of pages."""

import json
from pathlib import Path

import duckdb
import polars as pl
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from lake.settings import ConvertSettings
from tests.unit.native.reader_driver import batches_of
from transform.parquet_writer import ParquetFiles


def repeated(rows: int) -> bytes:
    """Columns that begin with a dictionary: some keep it, some overflow, by values or by bytes; a sorted one."""
    lines = (
        {
            "level": ("INFO", "WARN", "")[row * 7 % 3],
            "host": f"host-{row * 7919 % 1501}",
            "grows": f"user {row % 900 if row < rows // 2 else row}",
            "rare": "only" if row % 5000 == 17 else None,
            "long": "x" * (60_000 if row % 997 == 0 else 3) + str(row % 11),
            "time": f"{row // 7:06}",
        }
        for row in range(rows)
    )
    return b"\n".join(json.dumps(line).encode() for line in lines)


def test_rows_are_found_by_the_bounds_of_their_pages(spark: SparkSession, tmp_path: Path) -> None:
    # Given one row group with several pages per column, sorted and unsorted, with a dictionary, without, and with both
    paths: list[str] = []
    files = ParquetFiles(tmp_path, ConvertSettings(), lambda path, _: paths.append(str(path)))
    for batch in batches_of([repeated(70_000)]):
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
    values = [("time", "003000"), ("host", "host-1500"), ("grows", "user 69999"), ("rare", "only"), ("level", "")]
    for name, value in [*values, ("time", "x")]:
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
