"""Manifests that are converted a second time: forced by a person, after a publish or after a failed one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.integration.faults import Steps, crash_the_reader
from tests.integration.one_manifest import BODY, ROWS, convert_with, enqueue

if TYPE_CHECKING:
    from collections.abc import Callable

    import pytest
    from pyspark.sql import SparkSession

    from tests.integration.conversion_world import ConversionWorld


def test_a_manifest_whose_uploads_vanish_fails_and_leaves_nothing(world: ConversionWorld, spark: SparkSession) -> None:
    # Given uploads that are aborted between commit and publish
    manifest = enqueue(world)
    s3 = world.services.s3

    def fault(_number: int, name: str, call: Callable[[], Any]) -> Any:
        if name == "complete_multipart_upload":
            lake = world.services.resources.lake_bucket
            for upload in s3.list_multipart_uploads(Bucket=lake).get("Uploads", []):
                s3.abort_multipart_upload(Bucket=lake, Key=upload["Key"], UploadId=upload["UploadId"])
        return call()

    # When
    (outcome,) = convert_with(world, Steps(fault), spark, manifest)

    # Then
    assert outcome.state == "FAILED"
    assert "gone before completion" in str(outcome.reason)
    assert world.lake() == []
    assert world.quarantine() == []
    assert world.unfinished_uploads() == []

    # And when it is forced it is converted again
    assert world.services.ledger.manifests.force(world.row(manifest), world.clock())
    (outcome,) = world.convert([manifest], spark)
    assert (outcome.state, outcome.rows) == ("DONE", 2)
    assert world.lake() == ROWS


def test_a_forced_manifest_gets_a_generation_of_its_own(world: ConversionWorld, spark: SparkSession) -> None:
    # Given
    manifest = enqueue(world)
    world.convert([manifest], spark)
    assert world.services.ledger.manifests.force(world.row(manifest), world.clock())

    # When
    world.convert([manifest], spark)

    # Then both generations exist until the sweep, and the ledger names the new one
    keys = world.keys(world.services.resources.lake_bucket)
    assert all(key.startswith(world.prefix(manifest, number)) for key, number in zip(keys, (1, 2), strict=True))
    published = world.row(manifest).published
    assert published is not None
    assert published.generation == 2


def test_a_published_manifest_is_never_superseded(
    world: ConversionWorld, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Given a published manifest whose reprocess always dies
    manifest = world.enqueue([world.put(f"orders/{name}.json", BODY) for name in "ab"])
    world.convert([manifest], spark)
    before = world.lake()
    assert world.services.ledger.manifests.force(world.row(manifest), world.clock())
    world.configure("batch", max_attempts=1)
    crash_the_reader(monkeypatch, "orders/a.json")

    # When
    (outcome,) = world.convert([manifest], spark)

    # Then
    assert outcome.state == "FAILED"
    assert world.lake() == before
    published = world.row(manifest).published
    assert published is not None
    assert published.generation == 1
