"""docs/analysts.md in Spark, the casts that `catalog suggest` writes for Spark, and every cell of docs/notebooks/."""

import json
from decimal import Decimal
from pathlib import Path
from typing import Any, cast

import boto3
import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from cli.catalog.column_types import ColumnType, Dialect, TypeKind, cast_of, spark_view
from cli.catalog.suggest import suggest_for_folder
from cli.documents import Suggestion
from cli.local_clouds import local_config
from local.cloud import LocalCloud
from local.isolation import BUCKET_PLACE
from tests.unit.docs.test_analysts_page import EXPECTED, answers, convert_orders, statements

TYPES = [
    *(ColumnType(kind) for kind in TypeKind),
    *(ColumnType(kind, 3) for kind in (TypeKind.DECIMAL, TypeKind.TIMESTAMP, TypeKind.INSTANT)),
    ColumnType(TypeKind.INSTANT, 6),
]
WORDS = """
    1 +1 -0 00 01 1.5 1. .5 1e3 1E400 -1e-400 NaN Infinity 9223372036854775807 9223372036854775808
    -9223372036854775808 -9223372036854775809 12.5 12.5000 0.12345678901234567890 1d 1L 1_000 1,5 true false TRUE
    t yes
    2026-11-20 2026-02-30 2024-02-29 1500-02-29 2026-1-2 2026-11 2026 today now
    2026-11-20T08:00:00 2026-11-20T08:00:00.123456 2026-11-20T08:00:00.1234567 2026-11-20T24:00:00
    2026-11-20T08:00 2026-11-20T08:00:60 2026-02-30T08:00:00Z 2026-11-20T08:00:00Z 2026-11-20T08:00:00+01:00
    2026-11-20T08:00:00+14:00 2026-11-20T08:00:00+0100
    [] { [1 {} null "x"
"""
TEXTS = [
    *WORDS.split(),
    "1" * 38,
    "1" * 39,
    "",
    " ",
    "1 ",
    " 1",
    "1\n",
    "true\n",
    "2026-11-20 ",
    "2026-11-20 08:00:00.5",
    "2026-11-20 08:00:00.250-05:30",
    "2026-11-20T08:00:00 Europe/Berlin",
    "2026-11-20T08:00:00Z\n",
    '{"a": 1}',
    "[1, {}]",
]


def test_the_queries_run_in_spark(spark: SparkSession, tmp_path: Path) -> None:
    def run(statement: str) -> list[tuple[Any, ...]]:
        return [tuple(row) for row in spark.sql(statement).collect()]

    # A few rows: more partitions would only take time.
    spark.conf.set("spark.sql.shuffle.partitions", "1")
    try:
        found = answers("Spark", convert_orders(tmp_path), run)
    finally:
        spark.conf.unset("spark.sql.shuffle.partitions")
    assert found == EXPECTED


def test_the_casts_for_spark_accept_what_the_types_accept(spark: SparkSession) -> None:
    spark.createDataFrame([(text,) for text in TEXTS], "a STRING").createOrReplaceTempView("texts")
    casts = ", ".join(f"CAST({cast_of('a', kind, Dialect.SPARK)} AS STRING)" for kind in TYPES)
    rows = spark.sql(f"SELECT a, {casts} FROM texts").collect()
    assert sorted(row[0] for row in rows) == sorted(TEXTS)
    for text, *values in rows:
        for kind, value in zip(TYPES, values, strict=True):
            assert (value is not None) == kind.accepts(text), (kind, text, value)
            if value is not None and kind.kind is TypeKind.DECIMAL:
                assert Decimal(value) == Decimal(text)


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        (ColumnType(TypeKind.INSTANT, 3), "2026-11-20T01:30:00.250+02:00", "2026-11-19T23:30:00.250Z"),
        (ColumnType(TypeKind.DECIMAL, 2), "12.5", "12.50"),
    ],
)
def test_the_view_for_spark_has_values_of_the_types(
    spark: SparkSession, kind: ColumnType, text: str, value: str
) -> None:
    # Given
    spark.sql(f"SELECT '{text}' AS a, DATE '2026-11-20' AS date, 8 AS hour").createOrReplaceTempView("typed_source")
    # When
    spark.sql(spark_view("", "typed_source", ["a"], {"a": kind}))
    # Then
    utc = "date_format(to_utc_timestamp(a, current_timezone()), \"yyyy-MM-dd'T'HH:mm:ss.SSS'Z'\")"
    shown = utc if kind.kind is TypeKind.INSTANT else "CAST(a AS STRING)"
    (row,) = spark.sql(f"SELECT {shown}, a_text, hour FROM typed_source_typed").collect()
    assert tuple(row) == (value, text, 8)


def test_the_suggested_views_of_a_clean_dataset_give_the_same_rows_in_spark_and_duckdb(
    spark: SparkSession, tmp_path: Path
) -> None:
    # Given a dataset without any rejected line, and with a column that its first hour lacks.
    converted = convert_orders(tmp_path, clean=True)
    views = cast("Suggestion", suggest_for_folder(converted / "lake" / "orders", 5, None).document).sql
    query = "SELECT order__id, CAST(amount AS STRING), coupon, date, hour FROM orders_typed ORDER BY order__id"
    # When
    with duckdb.connect() as database:
        database.execute(views["duckdb"])
        rows = database.execute(query).fetchall()
    # And the view of the page over a day.
    view = next(text for _, text in statements("Spark", converted) if "VIEW orders\n" in text)
    spark.sql(view.replace("lake/orders'", "lake/orders/date=2026-11-20/*/*.parquet'", 1))
    spark.sql(views["spark"])
    # Then
    assert len(rows) == 3
    assert list(map(tuple, spark.sql(query).collect())) == rows


NOTEBOOKS = Path(__file__).resolve().parents[2] / "docs" / "notebooks"
LINES = ['{"id": 1, "userId": "a", "tags": ["x"]}', "not a row", '{"id": 2.50, "note": null}', "", '{"id": 3}']


def run_cells(notebook: Path) -> dict[str, Any]:
    """Run every cell; return the names that they define."""
    names: dict[str, Any] = {}
    for cell in json.loads(notebook.read_text(encoding="utf-8"))["cells"]:
        if cell["cell_type"] == "code":
            exec("".join(cell["source"]), names)
    return names


def test_the_notebook_on_the_local_cloud_sees_all_columns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cloud: LocalCloud
) -> None:
    # Given the bucket that the notebook names, and a later hour with an additional column
    monkeypatch.chdir(tmp_path)
    Path("dev.aws").write_text(local_config(cloud.endpoint, cloud.access_key, cloud.logs_dir))
    s3 = cloud.client("s3")
    s3.create_bucket(Bucket="lake", CreateBucketConfiguration=BUCKET_PLACE)
    for hour, row in ((8, {"id": "1"}), (9, {"id": "2", "coupon": "x"})):
        pq.write_table(pa.Table.from_pylist([row]), "file.parquet")
        key = f"orders/date=2026-11-20/hour={hour:02}/m-g1-00000.parquet"
        s3.put_object(Bucket="lake", Key=key, Body=Path("file.parquet").read_bytes())
    # When
    names = run_cells(NOTEBOOKS / "local_cloud.ipynb")
    # Then
    assert sorted(names["rows"].select("id", "coupon", "hour").rows()) == [("1", None, 8), ("2", "x", 9)]
    bucket = boto3.resource("s3").Bucket("lake")
    bucket.objects.delete()
    bucket.delete()


def test_the_notebook_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spark: SparkSession) -> None:
    # Given
    monkeypatch.chdir(tmp_path)
    Path("events.ndjson").write_text("\n".join(LINES))
    # When
    names = run_cells(NOTEBOOKS / "own_files.ipynb")
    # Then it used the session of the tests, and the columns are in order of their longest value
    assert names["spark"] is spark
    assert names["rows"]["id"].to_list() == ["1", "2.50", "3"]
    assert names["widest"]["column"].to_list()[:2] == ["tags", "id"]
