"""The stream lane's job against S3: pointers give the same lake as the batch lane's run documents."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest

import batch_job.main
from lake.layout import CHECKPOINT, INBOX, URGENT_INBOX
from lake.manifest import Lane
from streaming_job.inbox import has_open_manifests
from streaming_job.micro_batch import HELD_WAIT_SECONDS, convert_pointers
from streaming_job.stream import InboxStream
from tests.integration.faults import crash_the_reader

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tests.integration.conversion_world import ConversionWorld
    from transform.context import ConversionContext

BODY = b'{"a":1.10,"b":"x"}\nbroken\n{"c":null,"d":[1, 2]}\n'


def stream_context(world: ConversionWorld, spark: SparkSession) -> ConversionContext:
    return world.context(spark, "run-s", lambda: datetime.now(UTC))


def test_both_jobs_give_the_same_lake(world: ConversionWorld, spark: SparkSession) -> None:
    # Given a file, with one manifest for each lane
    world.configure("stream", trigger_seconds=1, idle_minutes=0.05)
    file = world.put("orders/a.ndjson", BODY)
    streamed = world.enqueue([file], Lane.STREAM)
    world.put_pointer(streamed)

    # When the stream lane works until it is idle
    InboxStream(stream_context(world, spark)).run()

    # Then the run has metered itself: its driver is the only worker here
    today = datetime.now(UTC).date()
    (cost,) = world.services.ledger.costs.of_days(today - timedelta(days=1), today)
    assert cost.lane == Lane.STREAM
    assert cost.dpu_milliseconds == pytest.approx(1000 * cost.seconds, abs=1000)
    assert [(share.dataset, share.files, share.bytes) for share in cost.shares] == [("orders", 1, len(BODY))]

    # And its rows are published, and the batch job publishes the same rows
    rows, rejects = world.lake(), world.quarantine()
    assert world.row(streamed).state == "DONE"
    assert rows == [{"a": "1.10", "b": "x"}, {"d": "[1, 2]"}]
    batched = world.enqueue([file])
    code = batch_job.main.run(world.context(spark, "run-b"), {"run": world.put_run_document([batched])})
    assert code == 0
    assert world.lake() == rows * 2
    assert world.quarantine() == rejects * 2
    assert world.services.ledger.stream.get().heartbeat_at is None


def test_a_checkpoint_that_cannot_be_read_is_set_aside(world: ConversionWorld, spark: SparkSession) -> None:
    # Given a damaged checkpoint of a past run, and a new pointer
    world.configure("stream", trigger_seconds=1, idle_minutes=0.05)
    first = world.enqueue([world.put("orders/a.ndjson", BODY)], Lane.STREAM)
    world.put_pointer(first)
    InboxStream(stream_context(world, spark)).run()
    control = world.services.resources.control_bucket
    for key in world.keys(control):
        if key.startswith(f"{CHECKPOINT}offsets/"):
            world.services.s3.put_object(Bucket=control, Key=key, Body=b"garbage")
    second = world.enqueue([world.put("orders/b.ndjson", BODY)], Lane.STREAM)
    world.put_pointer(second)
    # And one to an urgent manifest, which needs no checkpoint
    third = world.enqueue([world.put("orders/urgent/c.json", BODY)], Lane.STREAM, urgent=True)
    world.put_pointer(third, urgent=True)

    # When
    InboxStream(stream_context(world, spark)).run()

    # Then the work goes on, and the old checkpoint is kept
    assert (world.row(second).state, world.row(third).state) == ("DONE", "DONE")
    assert len(world.lake()) == 6
    assert not [key for key in world.keys(control) if key.startswith(URGENT_INBOX)]
    assert any(line.startswith("ALARM the checkpoint") for line in world.log_lines)
    assert any("set-aside" in key for key in world.keys(control))


def test_a_stop_request_ends_the_run_between_micro_batches(world: ConversionWorld, spark: SparkSession) -> None:
    # Given a run inside of its window and a stop request
    world.configure("stream", trigger_seconds=1)
    world.services.ledger.stream.open_window("2999-01-01T00:00:00+00:00")
    world.services.ledger.stream.request_stop(True)

    # When / Then the run returns
    InboxStream(stream_context(world, spark)).run()
    assert world.log_lines[-1] == "stopped as requested"
    assert world.services.ledger.stream.get().heartbeat_at is None


def test_the_micro_batch_waits_for_a_held_manifest(world: ConversionWorld, spark: SparkSession) -> None:
    # Given a manifest that another run holds until that run ends during the wait
    manifest = world.enqueue([world.put("orders/a.ndjson", BODY)], Lane.STREAM)
    manifests = world.services.ledger.manifests
    assert manifests.claim(world.row(manifest), "run-x", datetime.now(UTC), timedelta(hours=1))
    waits: list[float] = []

    def wait(seconds: float) -> None:
        waits.append(seconds)
        world.dead_runs.add("run-x")

    # When
    pointers = [f'{{"manifest":"{manifest}"}}', "garbage", '{"manifest":"20260101T000000x"}']
    outcomes = convert_pointers(stream_context(world, spark), pointers, wait)

    # Then
    assert {outcome.manifest: outcome.state for outcome in outcomes} == {
        manifest: "DONE",
        "20260101T000000x": "UNKNOWN",
    }
    assert waits == [HELD_WAIT_SECONDS]
    assert len(world.lake()) == 2


def test_a_poisonous_manifest_goes_to_the_batch_lane_with_an_alarm(
    world: ConversionWorld, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Given a manifest whose task always dies, and a good one
    world.configure("stream", max_attempts=1)
    crash_the_reader(monkeypatch, "orders/a.ndjson")
    bad = world.enqueue([world.put("orders/a.ndjson", BODY)], Lane.STREAM)
    good = world.enqueue([world.put("orders/b.ndjson", b'{"a":1}\n')], Lane.STREAM)

    # When
    outcomes = convert_pointers(
        stream_context(world, spark), [f'{{"manifest":"{manifest}"}}' for manifest in (bad, good)]
    )

    # Then
    assert {outcome.manifest: outcome.state for outcome in outcomes} == {bad: "SUPERSEDED", good: "DONE"}
    assert any(line.startswith(f"ALARM {bad} SUPERSEDED") for line in world.log_lines)
    (successor,) = world.row(bad).superseded_by
    assert (world.row(successor).state, world.row(successor).lane) == ("QUEUED", Lane.BATCH)


def test_a_deleted_pointer_is_skipped_when_its_micro_batch_is_replayed(
    world: ConversionWorld, spark: SparkSession
) -> None:
    # Given a run that dies within its micro-batch, and a pointer that is replaced before the next run
    world.configure("stream", trigger_seconds=1, idle_minutes=0.05)
    manifest = world.enqueue([world.put("orders/a.ndjson", BODY)], Lane.STREAM)
    world.put_pointer(manifest)
    row = world.row(manifest)
    assert world.services.ledger.manifests.claim(row, "run-x", datetime.now(UTC), timedelta(hours=1))

    def die(_seconds: float) -> None:
        raise ArithmeticError

    with pytest.raises(ArithmeticError):
        InboxStream(stream_context(world, spark), wait=die).run()
    control = world.services.resources.control_bucket
    for key in world.keys(control):
        if key.startswith(INBOX):
            world.services.s3.delete_object(Bucket=control, Key=key)
    world.put_pointer(manifest)
    world.dead_runs.add("run-x")

    # When
    InboxStream(stream_context(world, spark)).run()

    # Then
    assert world.row(manifest).state == "DONE"
    assert len(world.lake()) == 2
    assert not any("checkpoint" in line for line in world.log_lines)


def test_only_open_manifests_of_the_stream_lane_keep_a_run_going(world: ConversionWorld, spark: SparkSession) -> None:
    # Given a pointer of a manifest that is done
    manifest = world.enqueue([world.put("orders/a.ndjson", BODY)], Lane.STREAM)
    world.put_pointer(manifest)
    assert has_open_manifests(world.services)
    world.convert([manifest], spark)
    assert not has_open_manifests(world.services)

    # When it is forced, and so belongs to the batch lane / Then it does not count
    assert world.services.ledger.manifests.force(world.row(manifest), world.clock())
    assert not has_open_manifests(world.services)
