"""The stream lane's job with S3: pointers give the same lake as the batch lane's run documents."""

import tempfile
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import batch_job.main
from lake.layout import INBOX
from lake.manifest import Lane
from streaming_job import stream
from streaming_job.micro_batch import convert_portion
from streaming_job.stream import InboxStream
from tests.integration.conversion_world import ConversionWorld
from transform.outcome import ConversionOutcome
from transform.task_model import ConversionContext

BODY = b'{"a":1.10,"b":"x"}\nbroken\n{"c":null,"d":[1, 2]}\n'


def stream_context(world: ConversionWorld, spark: SparkSession) -> ConversionContext:
    return world.context(spark, "run-s", lambda: datetime.now(UTC))


def test_both_jobs_give_the_same_lake(world: ConversionWorld, spark: SparkSession) -> None:
    # Given a file, with one manifest for each lane
    world.configure("stream", trigger_seconds=1, idle_minutes=0.05, jobs=2)
    file = world.put("orders/a.ndjson", BODY)
    streamed, others = world.enqueue([file], Lane.STREAM), world.enqueue([file], Lane.STREAM)
    world.put_pointer(streamed)
    world.put_pointer(others, shard="2")

    # When the first shard's job works until it is idle
    InboxStream(stream_context(world, spark)).run()

    # Then it has left the inbox of the second shard alone
    assert [key.partition("/")[0] for key in world.keys("control") if key.startswith("inbox")] == ["inbox-2"]
    assert world.row(others).state == "QUEUED"

    # And the run has metered itself: its driver is the only worker here
    today = datetime.now(UTC).date()
    (cost,) = world.ledger.costs.of_days(today - timedelta(days=1), today)
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
    assert world.ledger.stream.get().heartbeat_at is None


def test_micro_batches_follow_one_another_while_pointers_come_and_go(
    world: ConversionWorld, spark: SparkSession, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    # Given micro-batches that read one pointer each, and a folder whose name is different in a URI
    (folder := tmp_path / "a folder").mkdir()
    monkeypatch.setattr(stream, "MAX_POINTERS_PER_TRIGGER", 1)
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    world.configure("stream", trigger_seconds=1, idle_minutes=0.05)
    manifests = [
        world.enqueue([world.put(f"orders/{number}.ndjson", b'{"a":"%d"}\n' % number)], Lane.STREAM)
        for number in range(4)
    ]
    for manifest in manifests[:2]:
        world.put_pointer(manifest)
    late = manifests[2:]

    # And a first micro-batch in which pointers arrive, and another pointer is renamed
    def convert(context: ConversionContext, given: list[str], *_: object) -> list[ConversionOutcome]:
        if late:
            (other,) = (manifest for manifest in manifests[:2] if manifest not in given)
            (key,) = (key for key in world.keys("control") if key.startswith(f"{INBOX}{other}"))
            world.s3.delete_object(Bucket=world.bucket("control"), Key=key)
            late.append(other)
        while late:
            world.put_pointer(late.pop())
        return convert_portion(context, given)

    monkeypatch.setattr(stream, "convert_portion", convert)

    # When
    InboxStream(stream_context(world, spark)).run()

    # Then each manifest was converted once
    assert sum(line.endswith(": 1 manifest") for line in world.log_lines) == 4
    assert [(world.row(manifest).state, world.row(manifest).attempt) for manifest in manifests] == [("DONE", 1)] * 4
    rows = world.lake()
    assert len(rows) == 4
    assert {row["a"] for row in rows} == {"0", "1", "2", "3"}

    # And the query leaves nothing, on S3 or on the disk of the driver
    assert {key.partition("/")[0] for key in world.keys("control")} == {"manifests", "commits", "results"}
    assert not list(tmp_path.rglob("checkpoint-*"))
