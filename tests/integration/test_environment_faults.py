"""Work that a job may not do, or cannot do now, is not a fault of a manifest: it waits, and loses nothing."""

import math
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, cast

import boto3
import pytest
from botocore.exceptions import ReadTimeoutError
from pyspark.sql import SparkSession

import batch_job.main
from lake.ledger import Ledger, State
from lake.manifest import Lane
from lake.manifest_documents import read_denied
from router.settle.verdict import ExecutionOutcome, Tally, judge_execution
from streaming_job.stream import InboxStream
from tests.integration.conversion_world import ConversionWorld
from transform.convert import MAX_WAITS
from transform.preflight import BlockedRunError

BODY = b'{"a":1}\nbroken\n{"a":2}\n'


@dataclass(frozen=True)
class Unanswered:
    """A client whose requests of one operation get no answer until the run has waited ``waits`` times."""

    client: Any
    operation: str
    world: ConversionWorld
    waits: float

    def __getattr__(self, name: str) -> Any:
        lost = name == self.operation and len(self.world.waits) < self.waits
        return self._lose if lost else getattr(self.client, name)

    def _lose(self, **_: Any) -> None:
        raise ReadTimeoutError(endpoint_url="the emulator")


def check_published_once(world: ConversionWorld, manifest: str) -> None:
    assert world.row(manifest).state == State.DONE
    assert world.lake() == [{"a": "1"}, {"a": "2"}]
    assert [record["line"] for record in world.quarantine()] == ["broken"]
    assert world.unfinished_uploads() == []
    assert world.result(manifest).rows == 2


@pytest.mark.parametrize("kind", ["lake", "quarantine", "input"])
def test_a_refused_bucket_uses_up_no_attempt(world: ConversionWorld, spark: SparkSession, kind: str) -> None:
    # Given three manifests, and a bucket that refuses the requests of their tasks
    world.configure("batch", max_attempts=1)
    manifests = [
        world.enqueue([world.put(f"orders/{name}{number}.json", b'{"a":1}\nbroken\n') for number in range(16)])
        for name in "abc"
    ]
    action = "s3:GetObject*" if kind == "input" else "s3:PutObject"
    world.deny(kind, action)

    # When
    outcomes = world.convert(manifests, spark)

    # Then nothing has changed, and the row names the permission
    assert [(outcome.manifest, outcome.state) for outcome in outcomes] == [(item, "WAITING") for item in manifests]
    rows = [world.row(manifest) for manifest in manifests]
    assert [(row.state, row.tries, row.exclusions) for row in rows] == [(State.QUEUED, 0, None)] * 3
    assert (world.lake(), world.unfinished_uploads()) == ([], [])
    assert all(action.removesuffix("*") in str(row.reason) for row in rows)

    # When it is granted, the next run converts everything
    world.allow(kind)
    assert {outcome.state for outcome in world.convert(manifests, spark, "run-2")} == {"DONE"}
    assert (world.lake(), [record["kind"] for record in world.quarantine()]) == ([{"a": "1"}] * 48, ["line"] * 48)


@pytest.mark.parametrize("lane", list(Lane))
def test_a_denied_object_waits_and_its_neighbours_are_published(
    world: ConversionWorld, spark: SparkSession, lane: Lane
) -> None:
    # Given a manifest with one denied file, whose key contains error names, one deleted file, and a good one
    world.configure("batch", max_attempts=1)
    key = "orders/AccessDenied/InvalidRange.json"
    gone = world.put("orders/gone.json", b'{"a":"gone"}\n')
    files = [world.put(key, b'{"a":"denied"}\n'), gone, world.put("orders/b.json", b'{"a":"b"}\n')]
    mixed = world.enqueue(files, lane)
    world.s3.delete_object(Bucket=gone.bucket, Key=gone.key, VersionId=str(gone.version_id))
    world.deny("input", "s3:GetObject*", key)

    # When
    outcomes = world.convert([mixed], spark)

    # Then only the denied file waits, it is not called bad input, and has used up no try
    source = world.row(mixed)
    denied, rest = source.superseded_by
    assert [(outcome.manifest, outcome.state) for outcome in outcomes] == [
        (mixed, "SUPERSEDED"),
        (denied, "WAITING"),
        (rest, "DONE"),
    ]
    assert key in str(source.reason)
    assert world.lake() == [{"a": "b"}]
    assert [record["source"] for record in world.quarantine()] == [gone.uri]
    row = world.row(denied)
    assert (row.lane, row.files, row.tries, row.exclusions) == (lane, 1, 0, None)
    assert row.created_at == source.created_at
    assert "s3:GetObject" in str(row.reason)
    assert world.unfinished_uploads() == []

    # When the read is allowed / Then the next run publishes the file
    world.allow("input")
    assert [outcome.state for outcome in world.convert([denied], spark, "run-2")] == ["DONE"]
    assert sorted(str(row["a"]) for row in world.lake()) == ["b", "denied"]


def test_a_denied_run_claims_nothing_and_gives_its_reason_once(world: ConversionWorld, spark: SparkSession) -> None:
    # Given a denied input bucket
    manifests = [world.enqueue([world.put(f"orders/{name}.json", b'{"a":1}\n')]) for name in "abc"]
    world.deny("input", "s3:GetObject*")
    arguments = {"run": world.put_run_document(manifests)}

    # When
    code = batch_job.main.run(world.context(spark, "run-1"), arguments)

    # Then there is one alarm, and the verdict finds the permission in the ledger
    assert code == 1
    (alarm,) = world.alarms
    assert alarm.startswith("ALARM run run-1 cannot start: s3:GetObject")
    assert [world.row(manifest).attempt for manifest in manifests] == [0, 0, 0]
    tally = Tally(now=world.clock())
    for manifest in manifests:
        tally.add(world.row(manifest))
    verdict = judge_execution(tally)
    assert verdict.outcome == ExecutionOutcome.FAILED
    assert "s3:GetObject" in verdict.message
    # And no further job run is started for them
    assert read_denied(world.s3, world.resources.control_bucket, arguments["run"]) == set(manifests)

    # When it is granted / Then a run that a person starts converts everything
    world.allow("input")
    assert batch_job.main.run(world.context(spark, "run-2"), arguments) == 0
    assert world.lake() == [{"a": "1"}] * 3


def test_a_publish_that_is_refused_is_finished_by_the_next_run(world: ConversionWorld, spark: SparkSession) -> None:
    # Given a lake whose objects may be written but not read
    manifest = world.enqueue([world.put("orders/a.json", BODY)])
    world.deny("lake", "s3:GetObject")

    # When
    (outcome,) = world.convert([manifest], spark)

    # Then the commit is kept, and the row names the permission
    row = world.row(manifest)
    assert (outcome.state, row.state, row.tries) == ("WAITING", State.PUBLISHING, 1)
    assert "s3:GetObject is denied" in str(row.reason)

    # When it is granted / Then nothing is converted again
    world.allow("lake")
    assert [item.state for item in world.convert([manifest], spark, "run-2")] == ["DONE"]
    assert world.row(manifest).attempt == 1
    check_published_once(world, manifest)


@pytest.mark.parametrize(("operation", "waits"), [("get_object", 1), ("update_item", 1), ("get_object", math.inf)])
def test_load_is_waited_for_in_the_same_run_a_few_times(
    world: ConversionWorld, spark: SparkSession, operation: str, waits: float
) -> None:
    # Given a service that does not answer the driver until the run has waited
    world.configure("batch", max_attempts=1)
    manifest = world.enqueue([world.put("orders/a.json", BODY)])
    dynamodb = boto3.resource("dynamodb").meta.client
    s3, ledger = (cast("Any", Unanswered(client, operation, world, waits)) for client in (world.s3, dynamodb))
    world.s3, world.ledger = s3, Ledger.over(ledger, world.resources.ledger_table)
    # When
    (outcome,) = world.convert([manifest], spark)
    # Then each wait is longer than the previous one
    assert world.waits == sorted(world.waits)
    assert len(world.waits) == min(waits, MAX_WAITS)
    if waits == 1:
        check_published_once(world, manifest)
    else:
        assert (outcome.state, world.row(manifest).state, world.row(manifest).tries) == ("WAITING", State.QUEUED, 0)


def enqueue_for_stream(world: ConversionWorld, name: str) -> str:
    manifest = world.enqueue([world.put(f"orders/{name}.json", b'{"a":1}\n')], Lane.STREAM)
    world.put_pointer(manifest)
    return manifest


def test_a_stream_that_may_not_read_ends_and_the_next_run_repeats_its_micro_batch(
    world: ConversionWorld, spark: SparkSession
) -> None:
    # Given a denied input bucket, and two pointers
    world.configure("stream", trigger_seconds=1, idle_minutes=0.05)
    world.configure("batch", max_attempts=1)
    manifests = [enqueue_for_stream(world, name) for name in "ab"]
    world.deny("input", "s3:GetObject*")

    # When
    with pytest.raises(BlockedRunError, match="s3:GetObject"):
        InboxStream(world.context(spark, "run-1", lambda: datetime.now(UTC))).run()

    # Then no attempt is used up, and alarms give the reason
    assert [(world.row(item).state, world.row(item).tries) for item in manifests] == [(State.QUEUED, 0)] * 2
    assert world.alarms
    assert all("s3:GetObject" in alarm for alarm in world.alarms)

    # When it is granted / Then the same pointers are converted, although none was written again
    world.allow("input")
    InboxStream(world.context(spark, "run-2", lambda: datetime.now(UTC))).run()
    assert world.lake() == [{"a": "1"}] * 2
