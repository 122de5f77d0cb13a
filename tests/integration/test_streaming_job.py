"""The stream lane's job against S3: pointers lead to the same lake as the batch lane's run documents."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest

import batch_job.main
from lake.layout import CHECKPOINT, INBOX
from lake.manifest import Lane
from streaming_job.inbox import unfinished
from streaming_job.micro_batch import HELD_WAIT_SECONDS, convert_pointers
from streaming_job.stream import InboxStream

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tests.integration.conversion_world import Deployment
    from transform.context import ConversionContext

BODY = b'{"a":1.10,"b":"x"}\nbroken\n{"c":null,"d":[1, 2]}\n'


def stream_context(deployment: Deployment, spark: SparkSession) -> ConversionContext:
    return deployment.context(spark, "run-s", lambda: datetime.now(UTC))


def test_both_jobs_give_the_same_lake(deployment: Deployment, spark: SparkSession) -> None:
    # Given the same file once for each lane
    deployment.set_stream(trigger_seconds=1, idle_minutes=0.05)
    file = deployment.put("orders/a.ndjson", BODY)
    streamed = deployment.enqueue([file], Lane.STREAM)
    deployment.point(streamed)

    # When the stream works until it is idle
    InboxStream(stream_context(deployment, spark)).run()

    # Then its rows are there, and the batch job publishes the same ones
    rows, rejects = deployment.lake(), deployment.quarantine()
    assert deployment.row(streamed).state == "DONE"
    assert rows == [{"a": "1.10", "b": "x"}, {"d": "[1, 2]"}]
    batched = deployment.enqueue([file])
    code = batch_job.main.run(deployment.context(spark, "run-b"), {"run": deployment.write_run([batched])})
    assert code == 0
    assert deployment.lake() == rows * 2
    assert deployment.quarantine() == rejects * 2
    assert deployment.services.ledger.stream.get().heartbeat_at is None


def test_a_checkpoint_that_cannot_be_read_is_set_aside(deployment: Deployment, spark: SparkSession) -> None:
    # Given a checkpoint of a past run that is damaged, and a new pointer
    deployment.set_stream(trigger_seconds=1, idle_minutes=0.05)
    first = deployment.enqueue([deployment.put("orders/a.ndjson", BODY)], Lane.STREAM)
    deployment.point(first)
    InboxStream(stream_context(deployment, spark)).run()
    control = deployment.services.resources.control_bucket
    for key in deployment.keys(control):
        if key.startswith(f"{CHECKPOINT}offsets/"):
            deployment.services.s3.put_object(Bucket=control, Key=key, Body=b"garbage")
    second = deployment.enqueue([deployment.put("orders/b.ndjson", BODY)], Lane.STREAM)
    deployment.point(second)

    # When
    InboxStream(stream_context(deployment, spark)).run()

    # Then the work goes on and the old one is kept
    assert deployment.row(second).state == "DONE"
    assert len(deployment.lake()) == 4
    assert any(line.startswith("ALARM the checkpoint") for line in deployment.log_lines)
    assert any("set-aside" in key for key in deployment.keys(control))


def test_a_stop_request_ends_the_run_between_micro_batches(deployment: Deployment, spark: SparkSession) -> None:
    # Given a run inside of its window and a stop request
    deployment.set_stream(trigger_seconds=1)
    deployment.services.ledger.stream.open_window("2999-01-01T00:00:00+00:00")
    deployment.services.ledger.stream.request_stop(True)

    # When / Then it returns
    InboxStream(stream_context(deployment, spark)).run()
    assert deployment.log_lines[-1] == "stopped as requested"
    assert deployment.services.ledger.stream.get().heartbeat_at is None


def test_a_held_manifest_is_waited_for(deployment: Deployment, spark: SparkSession) -> None:
    # Given a manifest that another run holds, until that run ends while we wait
    manifest = deployment.enqueue([deployment.put("orders/a.ndjson", BODY)], Lane.STREAM)
    manifests = deployment.services.ledger.manifests
    assert manifests.claim(deployment.row(manifest), "run-x", datetime.now(UTC), timedelta(hours=1))
    waits: list[float] = []

    def wait(seconds: float) -> None:
        waits.append(seconds)
        deployment.dead_runs.add("run-x")

    # When
    pointers = [f'{{"manifest":"{manifest}"}}', "garbage", '{"manifest":"20260101T000000x"}']
    outcomes = convert_pointers(stream_context(deployment, spark), pointers, wait)

    # Then
    assert {outcome.manifest: outcome.state for outcome in outcomes} == {
        manifest: "DONE",
        "20260101T000000x": "UNKNOWN",
    }
    assert waits == [HELD_WAIT_SECONDS]
    assert len(deployment.lake()) == 2


def test_a_poisonous_manifest_goes_to_the_batch_lane_with_an_alarm(deployment: Deployment, spark: SparkSession) -> None:
    # Given a manifest whose task always dies, and a good one
    deployment.set_stream(max_attempts=1)
    resources = replace(deployment.services.resources, quarantine_bucket="no-such-bucket")
    deployment.services = replace(deployment.services, resources=resources)
    bad = deployment.enqueue([deployment.put("orders/a.ndjson", BODY)], Lane.STREAM)
    good = deployment.enqueue([deployment.put("orders/b.ndjson", b'{"a":1}\n')], Lane.STREAM)

    # When
    outcomes = convert_pointers(
        stream_context(deployment, spark), [f'{{"manifest":"{manifest}"}}' for manifest in (bad, good)]
    )

    # Then
    assert {outcome.manifest: outcome.state for outcome in outcomes} == {bad: "SUPERSEDED", good: "DONE"}
    assert any(line.startswith(f"ALARM {bad} SUPERSEDED") for line in deployment.log_lines)
    (successor,) = deployment.row(bad).superseded_by
    assert (deployment.row(successor).state, deployment.row(successor).lane) == ("QUEUED", Lane.BATCH)


def test_a_pointer_that_is_gone_is_skipped_when_its_micro_batch_is_replayed(
    deployment: Deployment, spark: SparkSession
) -> None:
    # Given a run that dies within its micro-batch, and a pointer that is replaced before the next run
    deployment.set_stream(trigger_seconds=1, idle_minutes=0.05)
    manifest = deployment.enqueue([deployment.put("orders/a.ndjson", BODY)], Lane.STREAM)
    deployment.point(manifest)
    row = deployment.row(manifest)
    assert deployment.services.ledger.manifests.claim(row, "run-x", datetime.now(UTC), timedelta(hours=1))

    def die(_seconds: float) -> None:
        raise ArithmeticError

    with pytest.raises(ArithmeticError):
        InboxStream(stream_context(deployment, spark), wait=die).run()
    control = deployment.services.resources.control_bucket
    for key in deployment.keys(control):
        if key.startswith(INBOX):
            deployment.services.s3.delete_object(Bucket=control, Key=key)
    deployment.point(manifest)
    deployment.dead_runs.add("run-x")

    # When
    InboxStream(stream_context(deployment, spark)).run()

    # Then
    assert deployment.row(manifest).state == "DONE"
    assert len(deployment.lake()) == 2
    assert not any("checkpoint" in line for line in deployment.log_lines)


def test_only_open_manifests_of_the_stream_lane_keep_a_run_going(deployment: Deployment, spark: SparkSession) -> None:
    # Given a pointer of a manifest that is done
    manifest = deployment.enqueue([deployment.put("orders/a.ndjson", BODY)], Lane.STREAM)
    deployment.point(manifest)
    assert unfinished(deployment.services)
    deployment.convert([manifest], spark)
    assert not unfinished(deployment.services)

    # When it is forced, which is work of the batch lane / Then it does not count
    assert deployment.services.ledger.manifests.force(deployment.row(manifest), deployment.clock())
    assert not unfinished(deployment.services)
