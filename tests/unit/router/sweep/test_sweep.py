"""Every repair of the sweep, over emulated S3 and DynamoDB."""

import hashlib
from datetime import timedelta
from typing import Any

import pytest

from lake.commit import CommitDocument, PendingObject, write_commit
from lake.layout import commit_key, lake_key, quarantine_key
from lake.ledger import Claim, CommitReference, ManifestRow, State
from lake.manifest import Lane
from lake.publish import roll_forward
from router.sweep.handler import sweep
from tests.unit.router.conftest import Deployment

NOTHING = {
    "rolledForward": 0,
    "vanished": 0,
    "released": 0,
    "repointed": 0,
    "adopted": 0,
    "aborted": 0,
    "deleted": 0,
    "foreign": 0,
    "stalled": 0,
}


def upload(deployment: Deployment, bucket: str, key: str) -> PendingObject:
    body = key.encode()
    upload_id = deployment.raw_s3.create_multipart_upload(Bucket=bucket, Key=key)["UploadId"]
    part = deployment.raw_s3.upload_part(Bucket=bucket, Key=key, UploadId=upload_id, PartNumber=1, Body=body)
    etag = hashlib.md5(hashlib.md5(body).digest()).hexdigest() + "-1"
    return PendingObject(bucket, key, upload_id, (part["ETag"].strip('"'),), etag, len(body), 1)


def uploaded(deployment: Deployment, row: ManifestRow, files: int = 2) -> list[PendingObject]:
    lake = [
        upload(deployment, "lake", lake_key(row.partition, row.id, row.generation, number)) for number in range(files)
    ]
    return [*lake, upload(deployment, "quarantine", quarantine_key(row.partition, row.id, row.generation, files))]


def committed(deployment: Deployment, claim: Claim, files: int = 2) -> ManifestRow:
    """PUBLISHING, nothing completed."""
    row = claim.row
    *objects, reject = uploaded(deployment, row, files)
    document = CommitDocument(
        row.id, row.generation, row.attempt, row.partition, "jr_1", "", tuple(objects), (reject,), (), ("a",), 1
    )
    named = write_commit(deployment.s3, "control", commit_key(row.id, row.generation, row.attempt, "n"), document)
    deployment.ledger.manifests.commit(claim, named, deployment.now)
    return deployment.row(row.id)


def published(deployment: Deployment, row: ManifestRow) -> ManifestRow:
    """DONE."""
    publishing = committed(deployment, deployment.claimed(row))
    roll_forward(deployment.s3, deployment.ledger, "control", publishing, deployment.clock)
    return deployment.row(row.id)


def unfinished(deployment: Deployment) -> list[str]:
    found = [deployment.raw_s3.list_multipart_uploads(Bucket=bucket) for bucket in ("lake", "quarantine")]
    return [item["Key"] for answer in found for item in answer.get("Uploads", [])]


def changes(done: dict[str, int]) -> dict[str, int]:
    assert done.keys() == NOTHING.keys()
    return {name: number for name, number in done.items() if number}


def test_an_empty_deployment_needs_nothing(deployment: Deployment) -> None:
    assert sweep(deployment.services) == NOTHING


def test_a_publish_older_than_the_limit_is_rolled_forward_and_a_younger_one_left_alone(deployment: Deployment) -> None:
    # Given a manifest whose publisher died right after the commit point
    row = committed(deployment, deployment.claimed(deployment.queued("a")))
    # When the sweep comes soon, then after the limit
    assert changes(sweep(deployment.services)) == {}
    deployment.wait(timedelta(minutes=61))
    done = sweep(deployment.services)
    # Then only the second finishes it
    assert changes(done) == {"rolledForward": 1}
    assert deployment.row(row.id).state == State.DONE
    assert len(deployment.keys("lake")) == 2
    assert len(deployment.keys("quarantine")) == 1


def test_an_expired_lease_is_released_and_a_live_one_is_not(deployment: Deployment) -> None:
    row = deployment.claimed(deployment.queued("a")).row
    assert changes(sweep(deployment.services)) == {}
    deployment.wait(timedelta(minutes=11))
    assert changes(sweep(deployment.services)) == {"released": 1}
    assert deployment.row(row.id).state == State.QUEUED


def test_a_lease_of_a_run_that_is_over_is_released_at_once(deployment: Deployment) -> None:
    deployment.glue.runs = {"batch-job": {"jr_1": "FAILED", "jr_2": "RUNNING"}}
    dead = deployment.claimed(deployment.queued("a"), "jr_1").row
    live = deployment.claimed(deployment.queued("b"), "jr_2").row
    assert changes(sweep(deployment.services)) == {"released": 1}
    assert deployment.row(dead.id).state == State.QUEUED
    assert deployment.row(live.id).state == State.RUNNING


def test_a_lost_pointer_is_written_again_under_new_names_more_and_more_seldom(deployment: Deployment) -> None:
    # Given a manifest of the stream without a pointer
    row = deployment.queued("a", lane=Lane.STREAM)
    minutes_of_new_pointers = []
    # When the sweep comes every quarter of an hour and nobody reads the inbox
    for minute in range(0, 601, 15):
        if sweep(deployment.services)["repointed"]:
            minutes_of_new_pointers.append(minute)
        deployment.wait(timedelta(minutes=15))
    # Then pointers are added after ever longer waits, and the streaming job was started
    assert minutes_of_new_pointers == [15, 30, 45, 60, 120, 240, 480]
    keys = deployment.keys("control", f"inbox/{row.id}-")
    assert len(keys) == len(set(keys)) == len(minutes_of_new_pointers)
    assert deployment.glue.runs["stream-job"]


def test_a_young_manifest_of_the_stream_gets_no_pointer(deployment: Deployment) -> None:
    deployment.queued("a", lane=Lane.STREAM)
    deployment.wait(timedelta(minutes=14))
    assert sweep(deployment.services)["repointed"] == 0
    assert deployment.glue.runs == {}


def test_uploads_are_aborted_only_when_no_publish_can_need_them(deployment: Deployment) -> None:
    # Given uploads of a running attempt, of a committed one (named and stray) and of one that is done
    running = deployment.claimed(deployment.queued("a")).row
    uploaded(deployment, running)
    publishing = committed(deployment, deployment.claimed(deployment.queued("b")))
    stray = upload(deployment, "lake", lake_key(publishing.partition, publishing.id, 1, 70))
    done = published(deployment, deployment.queued("c"))
    late = upload(deployment, "quarantine", quarantine_key(done.partition, done.id, 1, 71))
    # When the sweep comes
    assert changes(sweep(deployment.services)) == {"aborted": 2}
    # Then only what can never be published is gone
    left = unfinished(deployment)
    assert stray.key not in left
    assert late.key not in left
    assert len(left) == 6


def test_uploads_of_a_superseded_manifest_and_of_an_earlier_generation_are_aborted(deployment: Deployment) -> None:
    row = deployment.queued("a", "b")
    uploaded(deployment, row)
    deployment.ledger.manifests.supersede([row], [deployment.manifest("a", "b")], "test", deployment.now)
    forced = published(deployment, deployment.queued("c"))
    upload(deployment, "lake", lake_key(forced.partition, forced.id, 1, 9))
    assert deployment.ledger.manifests.force(forced, deployment.now)
    assert changes(sweep(deployment.services)) == {"aborted": 4}


def test_a_replaced_generation_goes_after_the_grace_period_and_never_before_its_successor(
    deployment: Deployment,
) -> None:
    # Given generation 1 published and generation 2 queued for hours
    row = published(deployment, deployment.queued("a"))
    assert deployment.ledger.manifests.force(row, deployment.now)
    deployment.wait(timedelta(hours=5))
    assert changes(sweep(deployment.services)) == {}
    assert len(deployment.keys("lake")) == 2
    # When generation 2 is published
    published(deployment, deployment.row(row.id))
    assert changes(sweep(deployment.services)) == {}
    assert len(deployment.keys("lake")) == 4
    deployment.wait(timedelta(minutes=61))
    # Then generation 1 goes, and only it
    assert changes(sweep(deployment.services)) == {"deleted": 3}
    assert all("-g2-" in key for key in deployment.keys("lake") + deployment.keys("quarantine"))


def test_remains_of_a_failed_generation_go_and_the_published_one_stays(deployment: Deployment) -> None:
    row = published(deployment, deployment.queued("a"))
    deployment.ledger.manifests.force(row, deployment.now)
    claim = deployment.claimed(deployment.row(row.id))
    deployment.raw_s3.put_object(Bucket="lake", Key=lake_key(row.partition, row.id, 2, 0), Body=b"half")
    deployment.wait(timedelta(minutes=2))
    assert changes(sweep(deployment.services)) == {}
    deployment.ledger.manifests.fail(claim.row, "test", deployment.now)
    deployment.wait(timedelta(hours=9))
    assert changes(sweep(deployment.services)) == {"deleted": 1}
    assert all("-g1-" in key for key in deployment.keys("lake"))
    assert len(deployment.keys("lake")) == 2


def test_objects_of_others_are_left_alone_and_counted(deployment: Deployment) -> None:
    deployment.raw_s3.put_object(Bucket="lake", Key="orders/readme.txt", Body=b"")
    deployment.raw_s3.put_object(Bucket="lake", Key="orders/20250101T000000abc-g1-00000.parquet", Body=b"")
    assert changes(sweep(deployment.services)) == {"foreign": 2}
    assert len(deployment.keys("lake")) == 2


def test_listings_go_on_where_the_last_sweep_ran_out_of_time(
    deployment: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Given more objects than a page, and a clock that lets one page pass
    answers = []
    listing = deployment.raw_s3.list_objects_v2
    for number in range(5):
        deployment.raw_s3.put_object(Bucket="lake", Key=f"orders/{number}", Body=b"")

    def one_page(**request: Any) -> Any:
        if request["Bucket"] == "lake":
            answers.append(request["StartAfter"])
            deployment.wait(timedelta(minutes=3))
        return listing(**{**request, "MaxKeys": 2})

    monkeypatch.setattr(deployment.raw_s3, "list_objects_v2", one_page)
    # When the sweep comes three times, then once more
    counts = [sweep(deployment.services)["foreign"] for _ in range(4)]
    # Then each goes on behind the other, and the round begins anew
    assert counts == [2, 2, 1, 2]
    assert answers == ["", "orders/1", "orders/3", ""]


def test_an_object_whose_event_never_came_and_an_ownerless_arrival_get_an_owner(deployment: Deployment) -> None:
    # Given an object that nobody told us about
    deployment.ledger.datasets.register("orders")
    deployment.raw_s3.put_object(Bucket="input", Key="orders/missed.ndjson", Body=b"{}\n")
    modified = deployment.raw_s3.head_object(Bucket="input", Key="orders/missed.ndjson")["LastModified"]
    deployment.now = modified + timedelta(minutes=30)
    assert changes(sweep(deployment.services)) == {}
    # When it is old enough
    deployment.wait(timedelta(hours=7))
    assert changes(sweep(deployment.services)) == {"adopted": 1}
    # Then a manifest of the batch lane has it, once
    (row,) = deployment.ledger.manifests.open(Lane.BATCH, State.QUEUED)
    assert row.files == 1
    deployment.wait(timedelta(hours=7))
    assert changes(sweep(deployment.services)) == {}


def test_a_manifest_that_nobody_takes_is_reported(deployment: Deployment) -> None:
    deployment.queued("a")
    deployment.wait(timedelta(hours=35))
    assert changes(sweep(deployment.services)) == {}
    deployment.wait(timedelta(hours=2))
    assert changes(sweep(deployment.services)) == {"stalled": 1}


def test_one_repair_that_fails_does_not_keep_the_others_from_work(deployment: Deployment) -> None:
    # Given a manifest that Glue is asked about, a Glue that fails, and an upload to abort
    deployment.claimed(deployment.queued("a"))
    done = published(deployment, deployment.queued("b"))
    upload(deployment, "lake", lake_key(done.partition, done.id, 1, 9))
    deployment.glue.get_job_run = _throttled(deployment)
    # When the sweep comes
    with pytest.raises(Exception, match="Throttling"):
        sweep(deployment.services)
    # Then it says so, and the upload is gone
    assert unfinished(deployment) == []


def _throttled(deployment: Deployment) -> Any:
    def get_job_run(**_: Any) -> None:
        raise deployment.glue.exceptions.ClientError({"Error": {"Code": "ThrottlingException"}}, "GetJobRun")

    return get_job_run


def test_a_document_that_names_nothing_known_keeps_its_uploads(deployment: Deployment) -> None:
    # Given a PUBLISHING manifest whose commit document cannot be read
    row = committed(deployment, deployment.claimed(deployment.queued("a")))
    assert isinstance(row.document, CommitReference)
    deployment.raw_s3.put_object(Bucket="control", Key=row.document.key, Body=b"{}")
    assert changes(sweep(deployment.services)) == {}
    # Then nothing is decided before its publish is given up
    assert len(unfinished(deployment)) == 3
