"""convert on real Spark and S3 over HTTP: every row, reject and column of the input is in the output, exactly.

Files that cannot be read to their end fail with a reason; the other files of their manifest are published.
"""

import gzip
import json
import random
from collections import Counter
from uuid import UUID

import pytest
from pyspark.sql import SparkSession

from batch_job.main import run
from lake.layout import resubmitted_lines_key
from lake.manifest import ObjectVersion
from local.cloud import LocalCloud
from tests.integration.conversion_world import ConversionWorld, Row


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
    assert (result.rows, result.rejects.total(), result.failed_files) == (3, 2, 0)
    assert [source.blank_lines for source in result.sources] == [1, 0]
    assert result.sources[0].first_reject == "not JSON at byte 23"
    assert world.unfinished_uploads() == []
    dataset = world.ledger.datasets.get("orders")
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

    # Then one task has read the whole file
    assert (outcome.state, outcome.rows, outcome.rejects) == ("DONE", 3, 1)
    assert world.lake() == [{"a": "1"}, {"a": "2"}, {"a": "4"}]
    assert [(record["offset"], record["line"]) for record in world.quarantine()] == [(body.index(b"3"), "3")]


KEYS = ["a+b c%20d.json", "ä/😀.json", "a//b.json", "/a.json", "a\nb.json", "x/../y.json", "a#b?c=d&e.json", "k" * 1024]


def test_keys_of_every_kind_are_read(world: ConversionWorld, spark: SparkSession) -> None:
    manifest = world.enqueue([world.put(key, b'{"a":1}\n') for key in KEYS])
    (outcome,) = world.convert([manifest], spark)
    assert (outcome.state, outcome.rows, outcome.reason) == ("DONE", len(KEYS), None)


def body_with_uuid_keys(rng: random.Random, keys: int) -> bytes:
    """Objects of ten keys each; no key occurs twice."""
    names = [str(UUID(int=rng.getrandbits(128), version=4)) for _ in range(keys)]
    rows = [dict.fromkeys(names[start : start + 10], str(start)) for start in range(0, keys, 10)]
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


def members(row: Row) -> dict[str, str | None]:
    """The content of the input object: columns together with rescued values."""
    plain = {name: value for name, value in row.items() if name != "_rescued"}
    return {**plain, **json.loads(row.get("_rescued") or "{}")}


def test_every_row_and_key_arrives_of_objects_with_more_keys_than_a_dataset_may_have_columns(
    world: ConversionWorld, spark: SparkSession
) -> None:
    # Given: eight tasks that each find a dataset's maximum number of columns, another such manifest, a neighbour
    world.configure("convert", target_file_bytes=100_000, column_limit=200)
    rng = random.Random(7)
    bodies = [body_with_uuid_keys(rng, 600) for _ in range(9)]
    first = world.enqueue([world.put(f"orders/{number}.json", body) for number, body in enumerate(bodies[:8])])
    second = world.enqueue([world.put("orders/8.json", bodies[8])])
    neighbour = world.enqueue([world.put("visits/a.json", b'{"a":1}\n')], dataset="visits")

    # When
    document = world.put_run_document([first, second, neighbour])
    assert run(world.context(spark, "run-1"), {"run": document}) == 0

    # Then: all are DONE without using up a try, the dataset is full, and nothing is lost
    assert [world.row(manifest).state for manifest in (first, second, neighbour)] == ["DONE"] * 3
    assert all(world.row(manifest).tries == 1 for manifest in (first, second, neighbour))
    dataset = world.ledger.datasets.get("orders")
    assert dataset is not None
    assert len(dataset.columns) == 200
    values = Counter(value for row in world.lake() for value in members(row).values())
    expected = Counter(value for body in bodies for line in body.splitlines() for value in json.loads(line).values())
    assert values == expected + Counter({"1": 1})
    assert any("go to _rescued" in line for line in world.log_lines)
    assert world.unfinished_uploads() == []


GOOD = b'{"a":1}\n'


@pytest.mark.parametrize("reason", ["deleted", "overwritten"])
def test_a_file_whose_version_is_gone_is_in_the_quarantine_and_the_others_in_the_lake(
    cloud: LocalCloud, spark: SparkSession, reason: str
) -> None:
    # Given a version that was deleted, or an object that was overwritten in a bucket without versions
    world = ConversionWorld.create(cloud, versions=reason == "deleted")
    bad = world.put("orders/bad.json", GOOD)
    if reason == "deleted":
        world.s3.delete_object(Bucket=bad.bucket, Key=bad.key, VersionId=str(bad.version_id))
    else:
        world.put("orders/bad.json", b'{"a":"other"}\n')
    manifest = world.enqueue([bad, world.put("orders/good.json", GOOD)])
    # When
    (outcome,) = world.convert([manifest], spark)
    # Then
    assert outcome.state == "DONE"
    assert world.lake() == [{"a": "1"}]
    source, good = world.result(manifest).sources
    assert reason in str(source.failed)
    assert (source.lines, source.rows) == (0, 0)
    assert (good.failed, good.rows) == (None, 1)
    assert world.result(manifest).failed_files == 1
    (record,) = world.quarantine()
    assert record == {
        "kind": "file",
        "source": bad.uri,
        "version": bad.version,
        "offset": 0,
        "length": bad.size,
        "reason": source.failed,
    }
    assert world.row(manifest).attempt == 2
    assert world.unfinished_uploads() == []


def test_a_delete_marker_hides_nothing(world: ConversionWorld, spark: SparkSession) -> None:
    file = world.put("orders/a.json", GOOD)
    world.s3.delete_object(Bucket=file.bucket, Key=file.key)
    (outcome,) = world.convert([world.enqueue([file])], spark)
    assert (outcome.state, outcome.rows) == ("DONE", 1)


def test_the_version_null_is_read_after_the_bucket_got_versions(
    unversioned_world: ConversionWorld, spark: SparkSession
) -> None:
    # Given a file that was put before the bucket got versions, then overwritten and deleted
    world, s3 = unversioned_world, unversioned_world.s3
    file = world.put("orders/a.json", GOOD)
    s3.put_bucket_versioning(Bucket=file.bucket, VersioningConfiguration={"Status": "Enabled"})
    world.put("orders/a.json", b'{"a":"newer"}\n')
    s3.delete_object(Bucket=file.bucket, Key=file.key)
    # When, Then its own bytes are in the lake
    world.convert([world.enqueue([file])], spark)
    assert (world.lake(), world.quarantine()) == ([{"a": "1"}], [])


def test_the_same_bytes_that_are_put_after_the_bucket_got_versions_are_another_file(
    unversioned_world: ConversionWorld, spark: SparkSession
) -> None:
    # Given a file that was deleted before its conversion, and its bytes as a separate version
    world, s3 = unversioned_world, unversioned_world.s3
    file = world.put("orders/a.json", GOOD)
    s3.delete_object(Bucket=file.bucket, Key=file.key)
    s3.put_bucket_versioning(Bucket=file.bucket, VersioningConfiguration={"Status": "Enabled"})
    again = world.put("orders/a.json", GOOD)
    # When, Then they are in the lake once
    world.convert([world.enqueue([file]), world.enqueue([again])], spark)
    assert world.lake() == [{"a": "1"}]
    (record,) = world.quarantine()
    assert record["reason"] == "it was deleted after it arrived"


def test_repaired_lines_are_read_by_their_etag_where_control_keeps_versions(
    world: ConversionWorld, spark: SparkSession
) -> None:
    # Given lines under the names of `resubmit`, in a stage with protection.versions
    s3, bucket, key = world.s3, world.resources.control_bucket, resubmitted_lines_key("repaired")
    s3.put_bucket_versioning(Bucket=bucket, VersioningConfiguration={"Status": "Enabled"})
    s3.put_object(Bucket=bucket, Key=key, Body=GOOD)
    head = s3.head_object(Bucket=bucket, Key=key)
    file = ObjectVersion.of(bucket, key, head["ETag"], head["ContentLength"], head["LastModified"], None)
    # When, Then
    world.convert([world.enqueue([file])], spark)
    assert (world.lake(), world.quarantine()) == ([{"a": "1"}], [])
