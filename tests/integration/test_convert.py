"""convert on real Spark and S3 over HTTP: every row, reject and column of the input is in the output, exactly."""

import gzip
import io
import random
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from lake.manifest import Lane
from tests.integration.conversion_world import ConversionWorld
from tests.oracle import ndjson_oracle

DATA = Path(__file__).parents[3] / "shared" / "data"


def test_rows_rejects_and_blank_lines_add_up(world: ConversionWorld, spark: SparkSession) -> None:
    # Given a plain and a compressed file with broken lines, a blank line and keys that must be renamed
    plain = world.put("orders/a.ndjson", b'{"a":1.10,"date":"x"}\n\nbroken\n{"a":null,"B":{"c": 1}}')
    packed = world.put("orders/b.json", gzip.compress(b'{"hour":"\\u00e4","a":true}\n[1]\n'))
    manifest = world.enqueue([plain, packed])

    # When
    (outcome,) = world.convert([manifest], spark)

    # Then
    assert (outcome.state, outcome.rows, outcome.rejects) == ("DONE", 3, 2)
    assert world.lake() == [
        {"a": "1.10", "date__": "x"},
        {"__b": '{"c": 1}'},
        {"hour__": "ä", "a": "true"},
    ]
    assert [(record["line"], record["reason"]) for record in world.quarantine()] == [
        ("broken", "not JSON"),
        ("[1]", "not an object"),
    ]
    result = world.result(manifest)
    assert (result["rows"], result["rejects"], result["blank_lines"], result["failed_files"]) == (3, 2, 1, 0)
    assert result["sources"][0]["first_reject"] == "not JSON at byte 23"
    assert world.unfinished_uploads() == []
    dataset = world.services.ledger.datasets.get("orders")
    assert dataset is not None
    assert set(dataset.columns) == {"a", "date__", "__b", "hour__"}


def expected(*bodies: bytes) -> list[dict[str, str]]:
    return [row for body in bodies for _, row in ndjson_oracle.read(body).rows]


def in_any_order(rows: list[dict[str, str | None]] | list[dict[str, str]]) -> list[str]:
    return sorted(repr(sorted(row.items())) for row in rows)


@pytest.mark.parametrize(
    ("body", "concatenated"),
    [(b'\n[{"a":1},\n {"a":2}, 3, {"a":4}]\n', False), (b'{"a":1}{"a":2}\n3\n{\n"a":4}', True)],
)
def test_rows_without_lines_of_their_own(
    world: ConversionWorld, spark: SparkSession, body: bytes, *, concatenated: bool
) -> None:
    # Given splits that are smaller than the file
    world.configure("convert", split_bytes=8, concatenated=concatenated)
    manifest = world.enqueue([world.put("orders/a.json", body)])

    # When
    (outcome,) = world.convert([manifest], spark)

    # Then one task has read it whole
    assert (outcome.state, outcome.rows, outcome.rejects) == ("DONE", 3, 1)
    assert world.lake() == [{"a": "1"}, {"a": "2"}, {"a": "4"}]
    assert [(record["offset"], record["line"]) for record in world.quarantine()] == [(body.index(b"3"), "3")]


@pytest.mark.parametrize(
    "key",
    ["a+b c%20d.json", "ä/😀.json", "a//b.json", "/a.json", "a\nb.json", "x/../y.json", "a#b?c=d&e.json", "k" * 1024],
)
def test_keys_of_every_kind_are_read(world: ConversionWorld, spark: SparkSession, key: str) -> None:
    manifest = world.enqueue([world.put(key, b'{"a":1}\n')])
    (outcome,) = world.convert([manifest], spark)
    assert (outcome.state, outcome.rows) == ("DONE", 1)


def test_provenance_tells_two_versions_of_a_key_apart(world: ConversionWorld, spark: SparkSession) -> None:
    # Given
    world.configure("convert", provenance=True)
    first = world.put("orders/a.json", b'{"a":1}\n')
    second = world.put("orders/a.json", b'\n{"a":2}\n')
    manifest = world.enqueue([first, second])

    # When
    world.convert([manifest], spark)

    # Then
    assert world.lake() == [
        {
            "a": value,
            "_source": f"{version.uri}?versionId={version.version_id}",
            "_offset": offset,
            "_arrived_at": version.arrived_at,
        }
        for version, value, offset in ((first, "1", "0"), (second, "2", "1"))
    ]
    # And tables that are made after the setting is off have these columns, too
    dataset = world.services.ledger.datasets.get("orders")
    assert dataset is not None
    assert dataset.provenance


def test_known_columns_come_first_and_new_ones_are_remembered(world: ConversionWorld, spark: SparkSession) -> None:
    # Given a dataset with known columns, and keys that drift from row to row
    world.services.ledger.datasets.reserve_columns("orders", ["b", "z"], 1000)
    world.configure("convert", row_group_bytes=2_000, split_bytes=5_000, target_file_bytes=1_000_000)
    generator = random.Random(1)
    body = b"".join(
        b'{"k%d":%d,"b":"%s"}\n' % (row // 20, row, generator.randbytes(8).hex().encode()) for row in range(900)
    )
    manifest = world.enqueue([world.put("orders/a.json", body)])

    # When
    (outcome,) = world.convert([manifest], spark)

    # Then one file holds all rows with all columns of which it has a value
    assert outcome.rows == 900
    assert in_any_order(world.lake()) == in_any_order(expected(body))
    resources = world.services.resources
    (key,) = world.keys(resources.lake_bucket)
    file = io.BytesIO(world.services.s3.get_object(Bucket=resources.lake_bucket, Key=key)["Body"].read())
    assert pq.read_schema(file).names == ["b", "_rescued", *(f"k{number}" for number in range(45))]
    dataset = world.services.ledger.datasets.get("orders")
    assert dataset is not None
    assert set(dataset.columns) == {"b", "z", *(f"k{number}" for number in range(45))}


def test_many_manifests_in_one_call(world: ConversionWorld, spark: SparkSession) -> None:
    # Given manifests of both lanes, one id twice, one unknown
    ids = [
        world.enqueue([world.put(f"orders/{number}.json", b'{"a":%d}\n' % number)], lane)
        for number, lane in enumerate([Lane.BATCH, Lane.STREAM, Lane.BATCH])
    ]

    # When
    outcomes = world.convert([*ids, ids[0], "20260101T000000unknown"], spark)

    # Then
    assert [outcome.state for outcome in outcomes] == ["DONE", "DONE", "DONE", "UNKNOWN"]
    assert in_any_order(world.lake()) == in_any_order([{"a": "0"}, {"a": "1"}, {"a": "2"}])
