"""Repairs of the sweep on S3: uploads, replaced objects, listings, objects without an arrival."""

import hashlib
from datetime import timedelta
from typing import Any

import pytest

from lake.layout import commit_key, lake_key, preflight_key, quarantine_key
from lake.ledger import CommitReference, State
from lake.manifest import Lane
from router.sweep.handler import sweep
from tests.unit.router.conftest import Deployment
from tests.unit.router.sweep.sweeping import changes, committed, published, unfinished, upload, uploaded


def test_uploads_are_aborted_only_when_no_publish_can_need_them(deployment: Deployment) -> None:
    # Given uploads of a running attempt, of a committed one (named and stray) and of one that is done
    running = deployment.claimed(deployment.queued("a")).row
    uploaded(deployment, running)
    publishing = committed(deployment, deployment.claimed(deployment.queued("b")))
    stray = upload(deployment, "lake", lake_key(publishing.partition, publishing.id, 1, 70))
    done = published(deployment, deployment.queued("c"))
    late = upload(deployment, "quarantine", quarantine_key(done.partition, done.id, 1, 71))
    # When the sweep runs
    assert changes(sweep(deployment.services)) == {"aborted": 2}
    # Then only what can never be published is aborted
    left = unfinished(deployment)
    assert stray.key not in left
    assert late.key not in left
    assert len(left) == 6


def test_uploads_that_a_preflight_left_are_aborted(deployment: Deployment) -> None:
    for bucket in ("lake", "quarantine"):
        upload(deployment, bucket, preflight_key("jr_1"))
    assert changes(sweep(deployment.services)) == {"aborted": 2}
    assert not unfinished(deployment)


def test_uploads_of_a_superseded_manifest_and_of_an_earlier_generation_are_aborted(deployment: Deployment) -> None:
    row = deployment.queued("a", "b")
    uploaded(deployment, row)
    deployment.ledger.manifests.supersede([row], [deployment.manifest("a", "b")], "test", deployment.now)
    forced = published(deployment, deployment.queued("c"))
    upload(deployment, "lake", lake_key(forced.partition, forced.id, 1, 9))
    assert deployment.ledger.manifests.force(forced, deployment.now)
    assert changes(sweep(deployment.services)) == {"aborted": 4}


def test_a_replaced_generation_is_deleted_after_the_grace_period_and_not_before_its_successor(
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
    # Then generation 1 is deleted, and only it
    assert changes(sweep(deployment.services)) == {"deleted": 3}
    assert all("-g2-" in key for key in deployment.keys("lake") + deployment.keys("quarantine"))


def test_remains_of_a_failed_generation_are_deleted_and_the_published_one_is_kept(deployment: Deployment) -> None:
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


def test_foreign_objects_are_kept_and_counted(deployment: Deployment) -> None:
    deployment.raw_s3.put_object(Bucket="lake", Key="orders/readme.txt", Body=b"")
    deployment.raw_s3.put_object(Bucket="lake", Key="orders/20250101T000000abc-g1-00000.parquet", Body=b"")
    assert changes(sweep(deployment.services)) == {"foreign": 2}
    assert len(deployment.keys("lake")) == 2


def test_listings_continue_where_the_last_sweep_ran_out_of_time(
    deployment: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Given more objects than a page, and a clock that lets each sweep look at one object
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
    # When the sweep runs as often as there are objects, then once more
    counts = [sweep(deployment.services)["foreign"] for _ in range(6)]
    # Then each continues after the one before, and the next round starts from the beginning
    assert counts == [1] * 6
    assert answers == ["", *(f"orders/{number}" for number in range(4)), ""]


def test_an_object_whose_event_was_lost_gets_an_owner(deployment: Deployment) -> None:
    # Given an object whose event was lost
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


def test_a_commit_document_that_nobody_can_read_stops_no_other_upload(deployment: Deployment) -> None:
    # Given uploads of a PUBLISHING manifest whose committed document has an unknown format, and of one that is DONE
    claim = deployment.claimed(deployment.queued("a"))
    row, _ = claim.row, uploaded(deployment, claim.row)
    body = b'{"format":99}'
    key = commit_key(row.id, 1, 1, "n")
    deployment.raw_s3.put_object(Bucket="control", Key=key, Body=body)
    reference = CommitReference(key, hashlib.sha256(body).hexdigest())
    deployment.ledger.manifests.commit(claim, reference, deployment.now)
    done = published(deployment, deployment.queued("b"))
    late = upload(deployment, "quarantine", quarantine_key(done.partition, done.id, 1, 71))
    # When the sweep runs
    assert changes(sweep(deployment.services)) == {"aborted": 1}
    # Then the uploads of the first one are kept
    assert late.key not in unfinished(deployment)
    assert len(unfinished(deployment)) == 3


def test_uploads_are_kept_while_the_commit_document_cannot_be_read(deployment: Deployment) -> None:
    # Given a PUBLISHING manifest whose commit document cannot be read
    row = committed(deployment, deployment.claimed(deployment.queued("a")))
    assert isinstance(row.document, CommitReference)
    deployment.raw_s3.put_object(Bucket="control", Key=row.document.key, Body=b"{}")
    assert changes(sweep(deployment.services)) == {}
    # Then no upload is aborted before its publish has failed
    assert len(unfinished(deployment)) == 3
