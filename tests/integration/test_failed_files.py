"""Files that cannot be read to their end: failed by name and reason, everything else goes through."""

from __future__ import annotations

import gzip
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from lake.manifest import ObjectVersion
    from tests.integration.conversion_world import Deployment

GOOD = b'{"a":1}\n'


def check_only_the_good_file_is_in_the_lake(
    deployment: Deployment, spark: SparkSession, bad: ObjectVersion, reason: str
) -> None:
    manifest = deployment.enqueue([bad, deployment.put("orders/good.json", GOOD)])
    (outcome,) = deployment.convert([manifest], spark)
    assert outcome.state == "DONE"
    assert deployment.lake() == [{"a": "1"}]
    source, good = deployment.result(manifest)["sources"]
    assert reason in source["failed"]
    assert (source["lines"], source["rows"]) == (0, 0)
    assert (good["failed"], good["rows"]) == (None, 1)
    assert deployment.result(manifest)["failed_files"] == 1
    (record,) = deployment.quarantine()
    assert record == {
        "kind": "file",
        "source": bad.uri,
        "version": bad.version,
        "offset": 0,
        "length": bad.size,
        "reason": source["failed"],
    }
    assert deployment.row(manifest).attempt == 2
    assert deployment.unfinished_uploads() == []


def test_a_deleted_version(deployment: Deployment, spark: SparkSession) -> None:
    bad = deployment.put("orders/bad.json", GOOD)
    assert bad.version_id
    deployment.services.s3.delete_object(Bucket=bad.bucket, Key=bad.key, VersionId=bad.version_id)
    check_only_the_good_file_is_in_the_lake(deployment, spark, bad, "deleted")


def test_a_delete_marker_hides_nothing(deployment: Deployment, spark: SparkSession) -> None:
    file = deployment.put("orders/a.json", GOOD)
    deployment.services.s3.delete_object(Bucket=file.bucket, Key=file.key)
    (outcome,) = deployment.convert([deployment.enqueue([file])], spark)
    assert (outcome.state, outcome.rows) == ("DONE", 1)


def test_a_deleted_object_without_versions(unversioned: Deployment, spark: SparkSession) -> None:
    bad = unversioned.put("orders/bad.json", GOOD)
    assert bad.version_id is None
    unversioned.services.s3.delete_object(Bucket=bad.bucket, Key=bad.key)
    check_only_the_good_file_is_in_the_lake(unversioned, spark, bad, "deleted")


def test_an_overwritten_object_without_versions(unversioned: Deployment, spark: SparkSession) -> None:
    # Of a key that a range of obstore can spell, and of one that it cannot
    bad = unversioned.put("orders/bad.json", GOOD)
    unversioned.put("orders/bad.json", b'{"a":"other"}\n')
    check_only_the_good_file_is_in_the_lake(unversioned, spark, bad, "overwritten")


def test_an_overwritten_object_of_an_odd_key_without_versions(unversioned: Deployment, spark: SparkSession) -> None:
    bad = unversioned.put("orders//bad.json", GOOD)
    unversioned.put("orders//bad.json", b'{"a":"other"}\n')
    check_only_the_good_file_is_in_the_lake(unversioned, spark, bad, "overwritten")


def test_both_versions_of_an_overwritten_key_are_in_the_lake(deployment: Deployment, spark: SparkSession) -> None:
    first = deployment.put("orders/a.json", b'{"a":1}\n')
    second = deployment.put("orders/a.json", b'{"a":22}\n')
    (outcome,) = deployment.convert([deployment.enqueue([first, second])], spark)
    assert outcome.rows == 2
    assert deployment.lake() == [{"a": "1"}, {"a": "22"}]


def test_a_truncated_gzip(deployment: Deployment, spark: SparkSession) -> None:
    whole = gzip.compress(b"".join(b'{"a":"%d"}\n' % (number * 7919) for number in range(2000)))
    bad = deployment.put("orders/bad.json.gz", whole[: len(whole) // 2])
    check_only_the_good_file_is_in_the_lake(deployment, spark, bad, "truncated gzip")


def test_all_files_failed(deployment: Deployment, spark: SparkSession) -> None:
    # Given
    bad = deployment.put("orders/bad.json.gz", gzip.compress(GOOD)[:-3])
    manifest = deployment.enqueue([bad])

    # When
    (outcome,) = deployment.convert([manifest], spark)

    # Then
    assert (outcome.state, outcome.rows) == ("DONE", 0)
    assert "1 files failed" in str(outcome.reason)
    assert deployment.keys(deployment.services.resources.lake_bucket) == []
    assert len(deployment.quarantine()) == 1


def test_an_array_over_many_lines_is_quarantined_as_a_whole(deployment: Deployment, spark: SparkSession) -> None:
    bad = deployment.put("orders/bad.json", b'[\n{"a":"not this"},\n{"a":"nor this"}\n]\n')
    check_only_the_good_file_is_in_the_lake(deployment, spark, bad, "a JSON array over many lines")
