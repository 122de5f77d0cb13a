"""Two versions of the code side by side, as in a deployment or a rollback: the older leaves what it cannot read."""

from __future__ import annotations

import hashlib
import json
from datetime import timedelta
from typing import TYPE_CHECKING, Any
from unittest.mock import Mock

import pytest

from lake.commit import CommitDocument, PendingObject, UploadedPart, encode_commit
from lake.manifest import Lane
from tests.model.actors import fake_runtime, planner, sweeper, worker
from tests.model.invariants import InvariantChecker
from tests.model.world import LEASE, World

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from transform.upload import Uploads

NEWER_FORMAT = 2


class Crash(BaseException):
    """The process ends."""


def upload_of_the_version_before(
    self: Uploads, path: Path, size: int, bucket: str, key: str, rows: int
) -> PendingObject:
    """Without a checksum, and with the MD5s that S3 gives in a bucket without a KMS key."""
    s3: Any = self._s3
    upload_id = s3.create_multipart_upload(Bucket=bucket, Key=key)["UploadId"]
    body = path.read_bytes()
    s3.upload_part(Bucket=bucket, Key=key, UploadId=upload_id, PartNumber=1, Body=body)
    md5 = hashlib.md5(body)
    part = UploadedPart(md5.hexdigest(), None)
    etag = f"{hashlib.md5(md5.digest()).hexdigest()}-1"
    return PendingObject(bucket, key, upload_id, (part,), None, size, rows, etag)


def commit_of_the_version_before(document: CommitDocument) -> bytes:
    body: dict[str, Any] = json.loads(encode_commit(document))
    for item in (*body["objects"], *body["quarantine"]):
        del item["checksum"]
        item["parts"] = [part["etag"] for part in item["parts"]]
    return json.dumps({**body, "format": 1}).encode()


@pytest.fixture
def world() -> Iterator[World]:
    world = World()
    world.after_write = InvariantChecker(world).check
    with fake_runtime(world):
        yield world


def test_the_older_version_leaves_manifests_of_the_newer_one(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    # Given manifests of which the newer version has written some
    old = [world.queued(name) for name in "ab"]
    with monkeypatch.context() as newer:
        newer.setattr("lake.manifest.MANIFEST_FORMAT", NEWER_FORMAT)
        new = [world.queued(name) for name in "cd"]
    # When the older version plans, converts more often than a manifest has attempts, and sweeps
    planner(world, None)
    for number in range(4):
        worker(world, None, f"old{number}")
    sweeper(world, None)
    # Then its own manifests are done, and the others wait without having used up an attempt
    rows = world.rows()
    assert all(rows[manifest]["state"] in ("DONE", "SUPERSEDED") for manifest in old)
    waiting = [rows[manifest] for manifest in new]
    assert [row["state"] for row in waiting] == ["QUEUED", "QUEUED"]
    assert [row["attempt"] - row["base_attempt"] for row in waiting] == [0, 0]
    # When the newer version runs, then it converts them
    monkeypatch.setattr("lake.manifest.MANIFEST_FORMAT", NEWER_FORMAT)
    worker(world, None, "new", new)
    assert [world.rows()[manifest]["state"] for manifest in new] == ["DONE", "DONE"]
    assert world.rows()[new[0]]["lane"] == Lane.BATCH


@pytest.mark.parametrize("finisher", ["the next run", "the sweep"])
def test_the_newer_version_publishes_what_the_older_one_has_committed(
    monkeypatch: pytest.MonkeyPatch, finisher: str
) -> None:
    # Given lake and quarantine without a KMS key, which the older version refused
    world = World()
    world.s3.with_kms_key.clear()
    # When the older version commits and dies
    with fake_runtime(world), monkeypatch.context() as older:
        manifest = world.queued("a")
        older.setattr("transform.upload.Uploads._upload_part", upload_of_the_version_before)
        older.setattr("lake.commit.encode_commit", commit_of_the_version_before)
        older.setattr("transform.finalize.roll_forward", Mock(side_effect=Crash))
        with pytest.raises(Crash):
            worker(world, None, "old")
        assert world.rows()[manifest]["state"] == "PUBLISHING"
    # Then the newer one publishes it, from the document alone
    with fake_runtime(world):
        if finisher == "the next run":
            worker(world, None, "new", [manifest])
        else:
            world.wait(2 * LEASE + timedelta(hours=2))
            sweeper(world, None)
    assert world.rows()[manifest]["state"] == "DONE"
    assert world.s3.buckets["lake"]
    assert not world.s3.open_uploads()
