"""Files that cannot be read to their end fail with a reason; the other files of their manifest are published."""

from pyspark.sql import SparkSession

from lake.layout import resubmitted_lines_key
from lake.manifest import ObjectVersion
from tests.integration.conversion_world import ConversionWorld

GOOD = b'{"a":1}\n'


def check_only_the_good_file_is_in_the_lake(
    world: ConversionWorld, spark: SparkSession, bad: ObjectVersion, reason: str
) -> None:
    manifest = world.enqueue([bad, world.put("orders/good.json", GOOD)])
    (outcome,) = world.convert([manifest], spark)
    assert outcome.state == "DONE"
    assert world.lake() == [{"a": "1"}]
    source, good = world.result(manifest)["sources"]
    assert reason in source["failed"]
    assert (source["lines"], source["rows"]) == (0, 0)
    assert (good.get("failed"), good["rows"]) == (None, 1)
    assert world.result(manifest)["failed_files"] == 1
    (record,) = world.quarantine()
    assert record == {
        "kind": "file",
        "source": bad.uri,
        "version": bad.version,
        "offset": 0,
        "length": bad.size,
        "reason": source["failed"],
    }
    assert world.row(manifest).attempt == 2
    assert world.unfinished_uploads() == []


def test_a_deleted_version(world: ConversionWorld, spark: SparkSession) -> None:
    bad = world.put("orders/bad.json", GOOD)
    assert bad.version_id
    world.services.s3.delete_object(Bucket=bad.bucket, Key=bad.key, VersionId=bad.version_id)
    check_only_the_good_file_is_in_the_lake(world, spark, bad, "deleted")


def test_a_delete_marker_hides_nothing(world: ConversionWorld, spark: SparkSession) -> None:
    file = world.put("orders/a.json", GOOD)
    world.services.s3.delete_object(Bucket=file.bucket, Key=file.key)
    (outcome,) = world.convert([world.enqueue([file])], spark)
    assert (outcome.state, outcome.rows) == ("DONE", 1)


def test_an_overwritten_object_without_versions(unversioned_world: ConversionWorld, spark: SparkSession) -> None:
    bad = unversioned_world.put("orders/bad.json", GOOD)
    unversioned_world.put("orders/bad.json", b'{"a":"other"}\n')
    check_only_the_good_file_is_in_the_lake(unversioned_world, spark, bad, "overwritten")


def test_the_version_null_is_read_after_the_bucket_got_versions(
    unversioned_world: ConversionWorld, spark: SparkSession
) -> None:
    # Given a file that was put before the bucket got versions, then overwritten and deleted
    world, s3 = unversioned_world, unversioned_world.services.s3
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
    # Given a file that was deleted before it was converted, and its bytes as a version of their own
    world, s3 = unversioned_world, unversioned_world.services.s3
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
    # Given lines as `resubmit` names them, in a stage with protection.versions
    s3, bucket, key = world.services.s3, world.services.resources.control_bucket, resubmitted_lines_key("repaired")
    s3.put_bucket_versioning(Bucket=bucket, VersioningConfiguration={"Status": "Enabled"})
    s3.put_object(Bucket=bucket, Key=key, Body=GOOD)
    head = s3.head_object(Bucket=bucket, Key=key)
    file = ObjectVersion.of(bucket, key, head["ETag"], head["ContentLength"], head["LastModified"], None)
    # When, Then
    world.convert([world.enqueue([file])], spark)
    assert (world.lake(), world.quarantine()) == ([{"a": "1"}], [])
