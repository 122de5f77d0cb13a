"""Files of the batch lane wait in the collection of their hour, which is divided into manifests once."""

from datetime import timedelta
from typing import Any
from unittest.mock import patch

import pytest
from botocore.exceptions import ClientError

from lake.documents import get_document
from lake.errors import InvalidDocumentError, NewerDocumentError, TerminalError
from lake.hours import read_hour
from lake.layout import manifest_key, part_key
from lake.ledger import CollectionId, CommitReference, State
from lake.manifest import Lane, ObjectVersion, Partition
from lake.manifest_documents import read_manifest, write_division
from lake.successors import files_by_successor
from router import divide as divide_module
from router.divide import divide, divide_selected
from router.requests.selection import Selection
from router.sweep.manifests import divide_collections
from tests.unit.lake.world import PARTITION, file_of
from tests.unit.router.conftest import Deployment
from tests.unit.router.planning import collected
from tests.unit.router.sweep.sweeping import repair

CLICKS = Partition("clicks", "2026-11-20", PARTITION.hour)
FIRST = CollectionId.numbered(PARTITION.stamp, 1)
HOURS = timedelta(hours=2)


def listed(deployment: Deployment, manifest: str) -> list[str]:
    row = deployment.row(manifest)
    return [file.key for file in read_manifest(deployment.raw_s3, "control", row, ("input",)).files]


def test_an_hour_becomes_manifests_of_each_dataset_within_the_limits_as_old_as_their_oldest_part(
    deployment: Deployment,
) -> None:
    # Given three invocations of one hour, with more files of a dataset than a manifest takes
    deployment.configure(batch={"manifest_files": 2})
    created = deployment.now
    collected(deployment, "a", PARTITION, ("b", CLICKS))
    for name in "cd":
        deployment.wait(timedelta(minutes=1))
        collected(deployment, name)
    assert list(deployment.ledger.manifests.open(Lane.BATCH, State.QUEUED)) == []
    # When the hour is not over, then nothing happens; when it is, then the collection is divided
    divide_collections(repair(deployment))
    (row,) = deployment.ledger.collections.of_hour(PARTITION.stamp)
    assert (row.parts, row.files, row.bytes, row.closed_at) == (3, 4, 400, None)
    deployment.wait(HOURS)
    divide_collections(repair(deployment))
    rows = list(deployment.ledger.manifests.open(Lane.BATCH, State.QUEUED))
    found = sorted((row.partition, listed(deployment, row.id)) for row in rows)
    assert found == [(CLICKS, ["clicks/b"]), (PARTITION, ["orders/a", "orders/c"]), (PARTITION, ["orders/d"])]
    times = [created, created, created + timedelta(minutes=2)]
    assert sorted(row.created_at for row in rows) == [time.isoformat(timespec="milliseconds") for time in times]
    (row,) = deployment.ledger.collections.of_hour(PARTITION.stamp)
    assert row.final
    assert row.done
    assert list(deployment.ledger.collections.open()) == []


def test_a_full_collection_is_closed_by_the_next_invocation(deployment: Deployment) -> None:
    deployment.patch.setattr("lake.ledger.collections.MAX_FILES", 2)
    for name in "abcd":
        collected(deployment, name)
    rows = deployment.ledger.collections.of_hour(PARTITION.stamp)
    assert [(row.files, row.closed_at is not None, row.final) for row in rows] == [(2, True, False), (2, False, False)]


def test_a_damaged_part_keeps_only_the_hours_of_its_datasets_open_until_it_is_restored(
    deployment: Deployment,
) -> None:
    # Given two parts of different datasets, one with a damaged document
    damaged = collected(deployment, "a")
    collected(deployment, "b", CLICKS)
    body = get_document(deployment.raw_s3, "control", part_key(damaged))
    deployment.raw_s3.put_object(Bucket="control", Key=part_key(damaged), Body=b"{}")
    deployment.wait(HOURS)
    # When sweeps divide the hour
    for _ in range(2):
        sweep = repair(deployment)
        divide_collections(sweep)
    # Then the other dataset has its manifest, the damaged part waits, and the sweep names its object
    assert [row.partition for row in deployment.ledger.manifests.open(Lane.BATCH, State.QUEUED)] == [CLICKS]
    assert all(row.done for row in deployment.ledger.collections.of_hour(PARTITION.stamp))
    assert read_hour(deployment.ledger, PARTITION, has_table=False).waits_for == damaged
    assert read_hour(deployment.ledger, CLICKS, has_table=False).waits_for != damaged
    (error,) = sweep.errors
    assert isinstance(error, InvalidDocumentError)
    assert part_key(damaged) in str(error)
    # When it is restored, then it is divided like any other
    deployment.raw_s3.put_object(Bucket="control", Key=part_key(damaged), Body=body)
    divide_collections(repair(deployment))
    (row,) = (row for row in deployment.waiting() if row.partition == PARTITION)
    assert listed(deployment, row.id) == ["orders/a"]
    assert read_hour(deployment.ledger, PARTITION, has_table=False).waits_for == row.id
    assert list(deployment.ledger.collections.open()) == []


def test_a_collection_with_a_part_of_a_newer_version_is_left_to_it_and_reported(deployment: Deployment) -> None:
    collected(deployment, "a")
    deployment.patch.setattr("lake.documents.FORMAT", 0)
    deployment.wait(HOURS)
    sweep = repair(deployment)
    divide_collections(sweep)
    assert [type(error) for error in sweep.errors] == [NewerDocumentError]
    assert [row.division for row in deployment.ledger.collections.open()] == [None]


def test_a_collection_with_an_incomplete_list_is_not_divided(deployment: Deployment) -> None:
    part = collected(deployment, "a")
    key = {"pk": f"parts-of-collection#{FIRST}", "sk": part}
    deployment.dynamodb.delete_item(TableName="ledger", Key=key)
    with pytest.raises(TerminalError, match="lists 0 of 1 parts"):
        divide(deployment.services, FIRST)


LATER = Partition("orders", PARTITION.date, PARTITION.hour + 1)


@pytest.mark.parametrize(
    ("code", "seconds", "divided"),
    [
        ("SlowDown", 1, {LATER, PARTITION}),
        ("SlowDown", 60, {LATER, PARTITION}),
        ("SlowDown", 150, set()),
        ("AccessDenied", 1, {LATER}),
    ],
    ids=["again", "a minute", "for a long time", "denied"],
)
def test_an_hour_that_cannot_be_divided_now_is_not_left_out_of_a_plan(
    deployment: Deployment, code: str, seconds: int, divided: set[Partition]
) -> None:
    # Given an S3 that refuses the divisions of two hours for some time, and takes a second for each answer
    collected(deployment, "a")
    collected(deployment, "b", LATER)
    error = ClientError({"Error": {"Code": code, "Message": ""}}, "PutObject")
    end = deployment.now + timedelta(seconds=seconds)

    def write(*given: Any) -> CommitReference:
        deployment.wait(timedelta(seconds=1))
        if deployment.now <= end:
            raise error
        return write_division(*given)

    def sleep(pause: float) -> None:
        deployment.wait(timedelta(seconds=pause))

    with patch.object(divide_module, "write_division", write), patch("time.sleep", sleep):
        rows, fault = divide_selected(deployment.services, Selection())
    assert {row.partition for row in rows} == divided
    assert fault == (None if len(divided) == 2 else error)
    # The undivided hours are not lost
    rows, _ = divide_selected(deployment.services, Selection())
    assert {row.partition for row in rows} == {PARTITION, LATER} - divided


def test_a_file_is_followed_from_its_part_to_its_manifest(deployment: Deployment) -> None:
    # Given a part with files of two datasets, among others
    collected(deployment, "other")
    part = collected(deployment, "a", PARTITION, ("b", CLICKS))
    files: list[ObjectVersion] = [file_of("orders/a"), file_of("clicks/b")]
    services, row = deployment.services, deployment.row(part)

    def followed() -> dict[str, set[ObjectVersion]]:
        return files_by_successor(services.s3, services.ledger, services.resources, row, files)

    # When the part is not divided, then its files are in no manifest
    assert followed() == {}
    # When it is divided, then each file is in the manifest of its dataset
    divide(services, FIRST)
    held = followed()
    manifests = {deployment.row(manifest).partition: manifest for manifest in held}
    assert held == {manifests[PARTITION]: {files[0]}, manifests[CLICKS]: {files[1]}}
    # And with one damaged document, the files that no other document lists are in its manifest
    deployment.raw_s3.put_object(Bucket="control", Key=manifest_key(manifests[PARTITION]), Body=b"damaged")
    assert followed() == held
    # But with two damaged documents the manifest of each file is unknown
    deployment.raw_s3.put_object(Bucket="control", Key=manifest_key(manifests[CLICKS]), Body=b"damaged")
    with pytest.raises(InvalidDocumentError, match="was changed after the ledger recorded it"):
        followed()
