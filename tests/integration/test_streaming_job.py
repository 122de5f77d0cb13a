"""The stream lane's job with S3: pointers give the same lake as the batch lane's run documents."""

import tempfile
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import batch_job.main
from lake.manifest import Lane
from streaming_job import stream
from streaming_job.stream import InboxStream
from tests.integration.conversion_world import ConversionWorld

BODY = b'{"a":1.10,"b":"x"}\nbroken\n{"c":null,"d":[1, 2]}\n'


def test_both_jobs_give_the_same_lake(
    world: ConversionWorld, spark: SparkSession, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    # Given manifests of one file, micro-batches of one pointer, and a folder whose name is escaped in a URI
    (folder := tmp_path / "a folder").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    monkeypatch.setattr(stream, "MAX_POINTERS_PER_TRIGGER", 1)
    world.configure("stream", trigger_seconds=1, idle_minutes=0.05, jobs=2)
    file = world.put("orders/a.ndjson", BODY)
    *streamed, others = (world.enqueue([file], Lane.STREAM) for _ in range(3))
    for manifest in streamed:
        world.put_pointer(manifest)
    world.put_pointer(others, shard="2")

    # When the first shard's job works until it is idle
    InboxStream(world.context(spark, "run-s", lambda: datetime.now(UTC))).run()

    # Then it has left the inbox of the second shard alone, and its query has left nothing on S3 or on the driver's disk
    assert {key.partition("/")[0] for key in world.keys("control")} == {"inbox-2", "manifests", "commits", "results"}
    assert not list(tmp_path.rglob("checkpoint-*"))
    assert world.row(others).state == "QUEUED"

    # And the run has metered itself: its driver is the only worker here
    today = datetime.now(UTC).date()
    (cost,) = world.ledger.costs.of_days(today - timedelta(days=1), today)
    assert cost.lane == Lane.STREAM
    assert cost.dpu_milliseconds == pytest.approx(1000 * cost.seconds, abs=1000)
    assert [(share.dataset, share.files, share.bytes) for share in cost.shares] == [("orders", 2, 2 * len(BODY))]

    # And each manifest is published once, and the batch job publishes the same rows
    rows, rejects = [{"a": "1.10", "b": "x"}, {"d": "[1, 2]"}], world.quarantine()
    assert [(world.row(manifest).state, world.row(manifest).attempt) for manifest in streamed] == [("DONE", 1)] * 2
    assert world.lake() == rows * 2
    batched = world.enqueue([file])
    code = batch_job.main.run(world.context(spark, "run-b"), {"run": world.put_run_document([batched])})
    assert code == 0
    assert world.lake() == rows * 3
    assert world.quarantine() == rejects[:1] * 3
    assert world.ledger.stream.get().heartbeat_at is None
