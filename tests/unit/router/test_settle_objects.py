"""settle compares the ledger with the objects of lake and quarantine."""

import json
from collections.abc import Sequence
from typing import Any

import pytest

import router.settle.published
from lake.commit import read_commit
from lake.layout import result_key
from lake.ledger import ManifestRow
from tests.unit.router.conftest import Deployment
from tests.unit.router.settling import done, planned, settled
from tests.unit.router.sweep.sweeping import published


@pytest.fixture
def row(deployment: Deployment) -> ManifestRow:
    """The only manifest of an execution: DONE, with an object in the lake and one in the quarantine."""
    (row,) = planned(deployment, "a.json")
    done(deployment, row, 10, 2)
    return row


def verdict_document(deployment: Deployment) -> dict[str, Any]:
    body = deployment.raw_s3.get_object(Bucket="control", Key="plans/overnight/verdict.json")["Body"].read()
    document: dict[str, Any] = json.loads(body)
    return document


def test_objects_as_the_ledger_has_them_are_no_finding(deployment: Deployment, row: ManifestRow) -> None:
    # Given: an object of another manifest's generation under the same partition
    prefix = deployment.keys("lake")[0].rsplit("-", 1)[0]
    deployment.raw_s3.put_object(Bucket="lake", Key=f"{prefix}-99999.parquet", Body=b"not of this commit")
    # Then
    result = settled(deployment)
    assert (result["verdict"], result["damagedObjects"]) == ("SUCCEEDED_WITH_QUARANTINE", 0)
    assert verdict_document(deployment)["damaged"] == []


def test_objects_that_a_reprocess_has_replaced_meanwhile_are_no_finding(
    deployment: Deployment, row: ManifestRow, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Given an object that is gone, and the next generation, which is published while settle looks at this one
    (key,) = deployment.keys("lake")
    deployment.raw_s3.delete_object(Bucket="lake", Key=key)

    def reprocessed_meanwhile(*arguments: Any) -> Any:
        deployment.ledger.manifests.force(deployment.row(row.id), deployment.now)
        published(deployment, deployment.row(row.id))
        return read_commit(*arguments)

    monkeypatch.setattr(router.settle.published, "read_commit", reprocessed_meanwhile)
    # When, Then: that generation has an execution of its own
    assert settled(deployment)["damagedObjects"] == 0


@pytest.mark.parametrize("bucket", ["lake", "quarantine"])
def test_an_object_that_was_deleted_is_found(deployment: Deployment, row: ManifestRow, bucket: str) -> None:
    # Given
    (key,) = deployment.keys(bucket)
    deployment.raw_s3.delete_object(Bucket=bucket, Key=key)
    # When
    result = settled(deployment)
    # Then
    assert (result["verdict"], result["damagedObjects"], result["notify"]) == ("FAILED", 1, True)
    assert result["message"].startswith(f"1 published object is damaged (first: s3://{bucket}/{key} is missing)")
    assert verdict_document(deployment)["damaged"] == [
        {"manifest": row.id, "uri": f"s3://{bucket}/{key}", "problem": "is missing"}
    ]


def test_an_object_of_another_size_is_found(deployment: Deployment, row: ManifestRow) -> None:
    (key,) = deployment.keys("lake")
    size = len(deployment.raw_s3.get_object(Bucket="lake", Key=key)["Body"].read())
    deployment.raw_s3.put_object(Bucket="lake", Key=key, Body=b"short")
    settled(deployment)
    (damage,) = verdict_document(deployment)["damaged"]
    assert damage["problem"] == f"has 5 bytes, and {size} were published"


def test_an_object_with_other_bytes_of_the_same_size_is_found(deployment: Deployment, row: ManifestRow) -> None:
    (key,) = deployment.keys("lake")
    body = deployment.raw_s3.get_object(Bucket="lake", Key=key)["Body"].read()
    deployment.raw_s3.put_object(Bucket="lake", Key=key, Body=body[::-1])
    settled(deployment)
    (damage,) = verdict_document(deployment)["damaged"]
    assert damage["problem"] == "was replaced after it was published"


def test_without_its_result_document_keys_and_sizes_are_compared(deployment: Deployment, row: ManifestRow) -> None:
    (result,) = deployment.keys("control", "results/")
    deployment.raw_s3.delete_object(Bucket="control", Key=result)
    assert settled(deployment)["damagedObjects"] == 0
    (key,) = deployment.keys("lake")
    deployment.raw_s3.put_object(Bucket="lake", Key=key, Body=b"short")
    assert settled(deployment)["damagedObjects"] == 1


def test_a_commit_document_that_is_gone_is_a_finding_and_not_an_error(deployment: Deployment, row: ManifestRow) -> None:
    (key,) = deployment.keys("control", "commits/")
    deployment.raw_s3.delete_object(Bucket="control", Key=key)
    result = settled(deployment)
    assert (result["verdict"], result["damagedObjects"]) == ("FAILED", 1)
    (damage,) = verdict_document(deployment)["damaged"]
    assert damage["uri"] == f"s3://control/{key}"
    assert "is gone" in damage["problem"]


@pytest.mark.parametrize("body", [b'{"files": [', b"{}", b'{"sources": []}'])
def test_a_damaged_result_document_ends_the_verdict_of_no_other_manifest(deployment: Deployment, body: bytes) -> None:
    # Given: of two manifests with unreadable files, one whose result document is cut and one whose object is short
    first, second = planned(deployment, "a.json", "b.json")
    for row in (first, second):
        done(deployment, row, 10, unreadable="s3://input/b")
    for name, row in (("result", first), ("object", second)):
        bucket, key = ("control", result_key(row.id, 1)) if name == "result" else ("lake", lake_key_of(deployment, row))
        deployment.raw_s3.put_object(Bucket=bucket, Key=key, Body=body)
    # Then
    assert settled(deployment)["damagedObjects"] == 1
    assert [item["manifest"] for item in verdict_document(deployment)["damaged"]] == [second.id]


def lake_key_of(deployment: Deployment, row: ManifestRow) -> str:
    return next(key for key in deployment.keys("lake") if row.id in key)


def test_while_a_manifest_is_open_the_objects_are_not_listed(deployment: Deployment) -> None:
    # Given: one of two manifests is still being worked on, and the object of the other one was deleted
    first, second = planned(deployment, "a.json", "b.json")
    done(deployment, first, 10)
    deployment.claimed(deployment.row(second.id))
    (key,) = deployment.keys("lake")
    deployment.raw_s3.delete_object(Bucket="lake", Key=key)
    # Then: OPEN is asked for again and again, the last verdict has the finding
    assert (settled(deployment)["verdict"], settled(deployment)["damagedObjects"]) == ("OPEN", 0)


@pytest.mark.parametrize("number", [2, 3], ids=["after the listing", "after the comparison"])
def test_what_is_converted_again_meanwhile_is_left_to_its_own_execution(
    deployment: Deployment, row: ManifestRow, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    # Given: a manifest whose objects are gone, and that a person forces after the listing, or after the comparison
    for bucket in ("lake", "quarantine"):
        for key in deployment.keys(bucket):
            deployment.raw_s3.delete_object(Bucket=bucket, Key=key)
    manifests, before = deployment.ledger.manifests, deployment.row(row.id)
    get_many, calls = manifests.get_many, []

    def reading(_: object, ids: Sequence[str]) -> Any:
        calls.append(ids)
        if len(calls) == number:
            manifests.force(before, deployment.now)
        return get_many(ids)

    monkeypatch.setattr(type(manifests), "get_many", reading)
    # Then
    assert settled(deployment)["damagedObjects"] == 0
    assert len(calls) == number
