"""Roll-forward: from the commit document alone, repeated, and after a crash or an error at any point."""

import hashlib
import io
import threading
from dataclasses import fields, replace
from datetime import timedelta
from itertools import product
from operator import attrgetter
from typing import Any
from unittest.mock import Mock

import pytest
from botocore.exceptions import ClientError, IncompleteReadError

from lake.commit import CommitDocument, SourceCount, put_bound_document, read_result
from lake.errors import NewerDocumentError, TransientError, UploadsVanishedError
from lake.layout import commit_key, lake_key, quarantine_key
from lake.ledger import CommitReference, ManifestRow, State
from lake.publish import complete_all, roll_back, roll_forward
from tests.unit.lake.world import PARTITION, World, row_in_state, upload

BODIES = (b"first" * 10, b"second" * 10)


def publishing(world: World) -> tuple[ManifestRow, CommitDocument]:
    """A manifest right after its commit point: two lake files and a quarantine object, all invisible."""
    claim = world.claimed(world.queued("a.json"))
    names = [lake_key(PARTITION, claim.id, 1, number) for number in range(2)]
    objects = tuple(upload(world.raw_s3, "lake", name, body, 5) for name, body in zip(names, BODIES, strict=True))
    quarantine = (upload(world.raw_s3, "quarantine", quarantine_key(PARTITION, claim.id, 1, 0), b"{}", 1),)
    source = SourceCount("s3://input/a.json", "v1", 100, 12, 10, 1, {"not JSON": 1}, "not JSON at byte 7", None)
    document = CommitDocument(
        claim.id, 1, 1, PARTITION, "jr_1", "2026-11-20T09:30:00Z", objects, quarantine, (source,), ("new",), 1500
    )
    named = put_bound_document(world.raw_s3, "control", commit_key(claim.id, 1, 1, "n"), document)
    world.ledger.manifests.commit(claim, named, world.now)
    return world.row(claim.id), document


def roll(world: World, row: ManifestRow) -> State:
    return roll_forward(world.s3, world.ledger, "control", row, world.clock, BUCKETS)


def published(world: World) -> list[bytes]:
    return [world.raw_s3.get_object(Bucket="lake", Key=key)["Body"].read() for key in world.keys("lake")]


def test_a_publish_makes_everything_visible_and_its_result_has_what_was_read_and_written(world: World) -> None:
    # Given a generation without a visible object, and its publish
    row, document = publishing(world)
    assert world.keys("lake") == []
    world.wait(timedelta(minutes=2))
    assert roll(world, row) == State.DONE
    assert published(world) == list(BODIES)
    after, dataset = world.row(row.id).published, world.ledger.datasets.get("orders")
    assert after is not None
    assert dataset is not None
    assert (after.generation, after.document, dataset.columns) == (1, row.document, ("new",))
    # When its result is read
    result = read_result(world.raw_s3, "control", row.id, 1)
    # Then it has all of the commit document, and each object's ETag under which it was published
    members = attrgetter(*(item.name for item in fields(document)))
    assert members(result) == members(document)
    assert (result.rows, result.rejects, result.failed_files) == (10, {"not JSON": 1}, 0)
    assert result.published_at == "2026-11-20T09:32:00.000+00:00"
    etags = {**result.etags}
    for item in (*document.objects, *document.quarantine):
        head = world.raw_s3.head_object(Bucket=item.bucket, Key=item.key)
        assert etags.pop(item.key) == head["ETag"].strip('"')
    assert etags == {}


def test_vanished_uploads_leave_no_object_and_fail_the_manifest(world: World) -> None:
    # Given: one of the uploads was aborted, the others are unchanged
    row, document = publishing(world)
    gone = document.objects[1]
    world.raw_s3.abort_multipart_upload(Bucket="lake", Key=gone.key, UploadId=gone.upload_id)
    # When
    assert roll(world, row) == State.FAILED
    # Then: no part of it is visible
    assert world.keys("lake") == []
    assert world.keys("quarantine") == []
    assert world.raw_s3.list_multipart_uploads(Bucket="lake").get("Uploads", []) == []
    after = world.row(row.id)
    assert after.published is None
    assert after.reason is not None
    assert after.reason.startswith(f"1 upload disappeared before completion (first: {gone.key})")


@pytest.mark.parametrize("request_name", ["abort_multipart_upload", "delete_object"])
def test_the_objects_of_a_large_generation_are_rolled_back_in_parallel(world: World, request_name: str) -> None:
    # Given a generation with two uploads, or two objects, and an S3 that answers only when both requests have arrived
    row, document = publishing(world)
    if request_name == "delete_object":
        complete_all(world.s3, document.objects)
    both = threading.Barrier(2, timeout=10)
    answer = {f"{request_name}.side_effect": lambda **call: call["Bucket"] == "quarantine" or both.wait()}
    # When
    roll_back(Mock(wraps=world.s3, **answer), world.ledger, row, BUCKETS, "uploads are gone", world.now)
    # Then
    assert world.row(row.id).state == State.FAILED


@pytest.mark.parametrize("other", [BODIES[0][::-1], BODIES[0] + b"more"])
def test_an_object_with_other_bytes_is_not_the_completed_upload(world: World, other: bytes) -> None:
    _, document = publishing(world)
    one = document.objects[0]
    world.raw_s3.abort_multipart_upload(Bucket="lake", Key=one.key, UploadId=one.upload_id)
    world.raw_s3.put_object(Bucket="lake", Key=one.key, Body=other, ChecksumAlgorithm="CRC32")
    with pytest.raises(Exception, match="1 upload disappeared"):
        complete_all(world.s3, document.objects)


def change_document(world: World, row: ManifestRow) -> None:
    assert row.document is not None
    world.raw_s3.put_object(Bucket="control", Key=row.document.key, Body=b"{}")


def remove_document(world: World, row: ManifestRow) -> None:
    assert row.document is not None
    world.raw_s3.delete_object(Bucket="control", Key=row.document.key)


HARMS = [(change_document, "was changed after"), (remove_document, "is gone")]
BUCKETS = ("lake", "quarantine")


@pytest.mark.parametrize(("harm", "reason"), HARMS)
def test_what_a_document_that_was_lost_has_named_is_found_by_its_prefix(world: World, harm: Any, reason: str) -> None:
    # Given a process that crashed after its first completion, and the objects of another manifest
    row, document = publishing(world)
    complete_all(world.s3, [*document.objects[:1], *document.quarantine])
    others = [upload(world.raw_s3, bucket, f"orders/other/{bucket}", b"rows") for bucket in BUCKETS]
    complete_all(world.s3, others[:1])
    harm(world, row)
    # When
    assert roll_forward(world.s3, world.ledger, "control", row, world.clock, BUCKETS) == State.FAILED
    # Then none of its objects is left, and all objects of the other one are
    assert [world.keys(bucket) for bucket in BUCKETS] == [[others[0].key], []]
    assert [uploads(world, bucket) for bucket in BUCKETS] == [[], [others[1].key]]
    assert reason in (world.row(row.id).reason or "")


def test_a_document_that_was_truncated_in_transit_is_not_mistaken_for_a_changed_one(world: World) -> None:
    # Given a proxy that cuts a body short, with a matching header
    row, _ = publishing(world)
    cut = Mock(wraps=world.s3, **{"get_object.side_effect": lambda **_: {"Body": io.BytesIO(b"{")}})
    # When
    with pytest.raises(IncompleteReadError):
        roll_forward(cut, world.ledger, "control", row, world.clock, BUCKETS)
    # Then nothing was rolled back, and the next process publishes
    assert "abort_multipart_upload" not in calls_of(cut)
    assert roll(world, row) == State.DONE
    assert published(world) == list(BODIES)


def uploads(world: World, bucket: str) -> list[str]:
    return [item["Key"] for item in world.raw_s3.list_multipart_uploads(Bucket=bucket).get("Uploads", [])]


def test_objects_that_another_process_has_published_stay_although_the_document_is_lost_now(world: World) -> None:
    row, _ = publishing(world)
    assert roll(world, row) == State.DONE
    remove_document(world, row)
    assert roll_forward(world.s3, world.ledger, "control", row, world.clock, BUCKETS) == State.DONE
    assert published(world) == list(BODIES)


KEY = lake_key(PARTITION, "m", 1, 0)


def refusing(world: World, operation: str, *codes: str) -> Any:
    """An S3 that refuses one operation; it repeats the last of its codes."""
    answers: list[Any] = [{"Error": {"Code": code, "Message": ""}} for code in (*codes, *codes[-1:] * 9)]
    return Mock(wraps=world.s3, **{f"{operation}.side_effect": [ClientError(item, operation) for item in answers]})


def calls_of(s3: Any) -> list[str]:
    return [name for name, *_ in s3.method_calls]


@pytest.mark.parametrize(
    ("operation", "code"),
    [
        *product(["complete_multipart_upload", "head_object"], ["SlowDown", "AccessDenied", "403"]),
        # The page of a proxy: S3 has a code for a missing upload.
        ("complete_multipart_upload", "404"),
    ],
)
def test_an_error_that_does_not_say_that_the_upload_is_gone_is_raised(world: World, operation: str, code: str) -> None:
    item = upload(world.raw_s3, "lake", KEY, b"rows")
    s3 = refusing(world, operation, code)
    with pytest.raises(ClientError, match=code):
        complete_all(s3, [item])
    # Without a useless request
    assert "list_parts" not in calls_of(s3)
    # And the next process publishes it.
    assert complete_all(world.s3, [item]).keys() == {("lake", KEY)}


@pytest.mark.parametrize("code", ["SlowDown", "AccessDenied", "404"])
def test_nothing_fails_and_nothing_is_deleted_while_an_upload_cannot_be_aborted(world: World, code: str) -> None:
    # Given a committed manifest with one completed object, and an upload
    row = row_in_state(world, "PUBLISHING")
    keys = [lake_key(row.partition, row.id, row.generation, number) for number in range(2)]
    completed, _ = (upload(world.raw_s3, "lake", key, b"rows") for key in keys)
    complete_all(world.s3, [completed])
    s3 = refusing(world, "abort_multipart_upload", code)
    # When / Then
    with pytest.raises(ClientError, match=code):
        roll_back(s3, world.ledger, row, BUCKETS, "uploads are gone", world.now)
    assert world.row(row.id).state == State.PUBLISHING
    assert world.keys("lake") == keys[:1]


def test_a_repeated_completion_without_an_answer_does_not_say_that_the_upload_is_gone(world: World) -> None:
    # Given the document of an upload whose request the client repeated: the part now has another ETag
    item = upload(world.raw_s3, "lake", KEY, b"rows")
    item = replace(item, etag="0" * 32)
    s3 = refusing(world, "complete_multipart_upload", "InvalidPart", "SlowDown")
    with pytest.raises(ClientError, match="SlowDown"):
        complete_all(s3, [item])
    assert complete_all(world.s3, [item]).keys() == {("lake", KEY)}


def test_an_upload_whose_part_another_writer_has_replaced_is_gone(world: World) -> None:
    # Given an upload, and an S3 that refuses the checksum of a part that another writer has replaced
    item = upload(world.raw_s3, "lake", KEY, b"rows")
    s3 = refusing(world, "complete_multipart_upload", "InvalidPart")
    # Then the manifest is rolled back, because no repetition can complete the upload
    with pytest.raises(UploadsVanishedError, match="other content"):
        complete_all(s3, [item])
    assert calls_of(s3) == ["complete_multipart_upload", "list_parts", "complete_multipart_upload", "head_object"]


def test_a_success_without_an_object_does_not_say_that_the_upload_is_gone(world: World) -> None:
    # Given an S3 that has sent its status and nothing else
    item = upload(world.raw_s3, "lake", KEY, b"rows")
    s3 = Mock(wraps=world.s3, **{"complete_multipart_upload.side_effect": lambda **_: {}})
    # When, Then
    with pytest.raises(TransientError, match="has not completed"):
        complete_all(s3, [item])
    assert complete_all(world.s3, [item]).keys() == {("lake", KEY)}


@pytest.mark.parametrize("body", [b"", b"[]", b"{}", b'{"format": 2}', b'{"format": 1, "partition": {}}'])
def test_a_commit_document_of_another_version_is_left_alone(world: World, body: bytes) -> None:
    # Given: a committed document that this version cannot read
    claim = world.claimed(world.queued("a.json"))
    upload(world.raw_s3, "lake", lake_key(PARTITION, claim.id, 1, 0), b"row", 1)
    world.raw_s3.put_object(Bucket="control", Key="commits/x.json", Body=body)
    reference = CommitReference("commits/x.json", hashlib.sha256(body).hexdigest())
    world.ledger.manifests.commit(claim, reference, world.now)
    before = world.row(claim.id)
    world.faults.reset()
    # When
    with pytest.raises(NewerDocumentError, match="deploy the newer version"):
        roll(world, before)
    # Then
    assert world.row(claim.id) == before
    assert world.faults.writes == []
