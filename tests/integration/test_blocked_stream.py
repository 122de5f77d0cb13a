"""The stream lane when the environment refuses: no pointer is lost, no attempt used up, and nothing is held up."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest

from lake.ledger import State
from lake.manifest import Lane
from streaming_job.micro_batch import convert_manifests
from streaming_job.stream import InboxStream
from transform.preflight import BlockedRunError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tests.integration.conversion_world import ConversionWorld

BODY = b'{"a":1}\n'


def enqueue(world: ConversionWorld, name: str) -> str:
    manifest = world.enqueue([world.put(f"orders/{name}.json", BODY)], Lane.STREAM)
    world.put_pointer(manifest)
    return manifest


def test_a_stream_that_may_not_read_ends_and_the_next_run_repeats_its_micro_batch(
    world: ConversionWorld, spark: SparkSession
) -> None:
    # Given a denied input bucket, and two pointers
    world.configure("stream", trigger_seconds=1, idle_minutes=0.05)
    world.configure("batch", max_attempts=1)
    manifests = [enqueue(world, name) for name in "ab"]
    input_bucket = world.services.resources.input_bucket
    world.deny(input_bucket, "s3:GetObject*")

    # When
    with pytest.raises(BlockedRunError, match="s3:GetObject"):
        InboxStream(world.context(spark, "run-1", lambda: datetime.now(UTC))).run()

    # Then nothing was claimed, and one alarm says why
    assert [(world.row(item).state, world.row(item).attempt) for item in manifests] == [(State.QUEUED, 0)] * 2
    (alarm,) = [line for line in world.log_lines if line.startswith("ALARM")]
    assert "s3:GetObject" in alarm

    # When it is granted / Then the same pointers are converted, although none was written again
    world.allow(input_bucket)
    InboxStream(world.context(spark, "run-2", lambda: datetime.now(UTC))).run()
    assert world.lake() == [{"a": "1"}] * 2


def test_uploads_that_are_refused_in_a_running_stream_repeat_the_micro_batch(
    world: ConversionWorld, spark: SparkSession
) -> None:
    # Given a lake that refuses uploads
    manifest = enqueue(world, "a")
    world.deny(world.services.resources.lake_bucket, "s3:PutObject")

    # When / Then
    with pytest.raises(BlockedRunError, match="s3:PutObject"):
        convert_manifests(world.context(spark, "run-1"), [manifest])
    assert (world.row(manifest).state, world.row(manifest).tries) == (State.QUEUED, 0)


def test_a_denied_object_does_not_hold_up_the_pointers_behind_it(world: ConversionWorld, spark: SparkSession) -> None:
    # Given a micro-batch with only a denied object, and another manifest whose pointer is in the next one
    denied, good = enqueue(world, "denied"), enqueue(world, "good")
    world.deny(world.services.resources.input_bucket, "s3:GetObject*", "orders/denied.json")

    # When
    context = world.context(spark, "run-1")
    (first,) = convert_manifests(context, [denied], check_first=True)
    (second,) = convert_manifests(context, [good])

    # Then it waits for another pointer, which the sweep writes
    assert (first.state, second.state) == ("WAITING", "DONE")
    assert (world.row(denied).state, world.row(denied).tries) == (State.QUEUED, 0)
    (alarm,) = [line for line in world.log_lines if line.startswith("ALARM")]
    assert "orders/denied.json" in alarm
