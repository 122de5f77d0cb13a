"""Commit documents of the version before: they had expected ETags, and their uploads no checksums."""

import hashlib
import json
from dataclasses import asdict
from typing import Any

import pytest

from lake.commit import CommitDocument, decode_commit
from lake.errors import NewerDocumentError
from lake.layout import commit_key, lake_key
from lake.ledger import CommitReference, ManifestRow, State
from lake.publish import roll_forward
from tests.unit.lake.world import PARTITION, World


def md5(body: bytes) -> Any:
    return hashlib.md5(body, usedforsecurity=False)


def old_upload(world: World, key: str, body: bytes) -> dict[str, Any]:
    """An upload without a checksum, as a document of format 1 describes it."""
    upload_id = world.raw_s3.create_multipart_upload(Bucket="lake", Key=key)["UploadId"]
    world.raw_s3.upload_part(Bucket="lake", Key=key, UploadId=upload_id, PartNumber=1, Body=body)
    part = md5(body)
    return {
        "bucket": "lake",
        "key": key,
        "upload_id": upload_id,
        "parts": [part.hexdigest()],
        "etag": f"{md5(part.digest()).hexdigest()}-1",
        "size": len(body),
        "rows": 1,
    }


def old_publishing(world: World) -> tuple[ManifestRow, str]:
    """A manifest that the version before has committed; and the key of its object."""
    claim = world.claimed(world.queued("a.json"))
    key = lake_key(PARTITION, claim.row.id, 1, 0)
    empty = CommitDocument(claim.row.id, 1, 1, PARTITION, "jr_1", "2026-11-20T09:30:00Z", (), (), (), (), 1)
    body = json.dumps({"format": 1, **asdict(empty), "objects": [old_upload(world, key, b"rows")]}).encode()
    document = commit_key(claim.row.id, 1, 1, "n")
    world.raw_s3.put_object(Bucket="control", Key=document, Body=body)
    world.ledger.manifests.commit(claim, CommitReference(document, hashlib.sha256(body).hexdigest()), world.now)
    return world.row(claim.row.id), key


def roll(world: World, row: ManifestRow) -> State:
    return roll_forward(world.s3, world.ledger, "control", row, world.clock, ("lake", "quarantine"))


def test_what_the_version_before_has_committed_is_published_and_can_be_repeated(world: World) -> None:
    row, key = old_publishing(world)
    assert roll(world, row) == State.DONE
    assert roll(world, row) == State.DONE
    assert world.raw_s3.get_object(Bucket="lake", Key=key)["Body"].read() == b"rows"


def test_another_object_under_its_key_is_not_taken_for_its_upload(world: World) -> None:
    row, key = old_publishing(world)
    (upload,) = world.raw_s3.list_multipart_uploads(Bucket="lake")["Uploads"]
    world.raw_s3.abort_multipart_upload(Bucket="lake", Key=key, UploadId=upload["UploadId"])
    world.raw_s3.put_object(Bucket="lake", Key=key, Body=b"rows")
    assert roll(world, row) == State.FAILED


def test_an_upload_of_other_bytes_of_the_same_size_is_not_taken_for_it_either(world: World) -> None:
    # Given an object without a checksum, as the version before completed its own
    row, key = old_publishing(world)
    (upload,) = world.raw_s3.list_multipart_uploads(Bucket="lake")["Uploads"]
    world.raw_s3.abort_multipart_upload(Bucket="lake", Key=key, UploadId=upload["UploadId"])
    other = old_upload(world, key, b"sowr")
    part = {"PartNumber": 1, "ETag": f'"{other["parts"][0]}"'}
    world.raw_s3.complete_multipart_upload(
        Bucket="lake", Key=key, UploadId=other["upload_id"], MultipartUpload={"Parts": [part]}
    )
    # When / Then
    assert roll(world, row) == State.FAILED


def test_a_document_of_a_later_format_belongs_to_a_newer_version() -> None:
    with pytest.raises(NewerDocumentError, match="its format is 3"):
        decode_commit(b'{"format": 3}')
