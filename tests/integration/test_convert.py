"""convert on real Spark and S3 over HTTP: every row, reject and column of the input is in the output, exactly."""

import gzip

import pytest
from pyspark.sql import SparkSession

from tests.integration.conversion_world import ConversionWorld


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
    assert dataset.measured.input_bytes == plain.size + packed.size


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


KEYS = ["a+b c%20d.json", "ä/😀.json", "a//b.json", "/a.json", "a\nb.json", "x/../y.json", "a#b?c=d&e.json", "k" * 1024]


def test_keys_of_every_kind_are_read(world: ConversionWorld, spark: SparkSession) -> None:
    manifest = world.enqueue([world.put(key, b'{"a":1}\n') for key in KEYS])
    (outcome,) = world.convert([manifest], spark)
    assert (outcome.state, outcome.rows, outcome.reason) == ("DONE", len(KEYS), None)


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
