"""What a job is not allowed to do, or cannot do now, is not a fault of a manifest: it waits, and loses nothing."""

import math
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

import boto3
import pytest
from botocore.exceptions import ReadTimeoutError
from pyspark.sql import SparkSession

import batch_job.main
from lake.ledger import Ledger, State
from lake.manifest import Lane
from lake.manifest_documents import read_denied
from router.settle.verdict import ExecutionOutcome, Tally, judge
from streaming_job.micro_batch import convert_manifests
from streaming_job.stream import InboxStream
from tests.integration.conversion_world import ConversionWorld
from transform import preflight
from transform.convert import MAX_WAITS
from transform.outcome import ConversionOutcome
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


def leave_unanswered(world: ConversionWorld, operation: str, waits: float) -> None:
    """The driver gets no answers of this operation from S3 or DynamoDB."""
    services = world.services
    s3: Any = Unanswered(services.s3, operation, world, waits)
    dynamodb: Any = Unanswered(boto3.resource("dynamodb").meta.client, operation, world, waits)
    world.services = replace(services, s3=s3, ledger=Ledger.over(dynamodb, services.resources.ledger_table))


def check_published_once(world: ConversionWorld, manifest: str) -> None:
    assert world.row(manifest).state == State.DONE
    assert world.lake() == [{"a": "1"}, {"a": "2"}]
    assert [record["line"] for record in world.quarantine()] == ["broken"]
    assert world.unfinished_uploads() == []
    assert world.result(manifest)["rows"] == 2


def enqueue_three(world: ConversionWorld) -> list[str]:
    """Three manifests of 16 files, each of which has a row and a rejected line."""
    return [
        world.enqueue([world.put(f"orders/{name}{number}.json", b'{"a":1}\nbroken\n') for number in range(16)])
        for name in "abc"
    ]


def check_nothing_was_used_up(world: ConversionWorld, manifests: list[str], outcomes: list[ConversionOutcome]) -> None:
    assert [(outcome.manifest, outcome.state) for outcome in outcomes] == [(item, "WAITING") for item in manifests]
    for manifest in manifests:
        row = world.row(manifest)
        assert (row.state, row.tries, row.exclusions) == (State.QUEUED, 0, None)
    assert world.lake() == []
    assert world.unfinished_uploads() == []


def check_everything_is_published(world: ConversionWorld, outcomes: list[ConversionOutcome], files: int) -> None:
    assert {outcome.state for outcome in outcomes} == {"DONE"}
    assert world.lake() == [{"a": "1"}] * files
    assert [record["kind"] for record in world.quarantine()] == ["line"] * files


@pytest.mark.parametrize("kind", ["lake", "quarantine", "input"])
def test_a_refused_bucket_uses_up_no_attempt(world: ConversionWorld, spark: SparkSession, kind: str) -> None:
    # Given three manifests, and a bucket that refuses what their tasks need
    world.configure("batch", max_attempts=1)
    manifests = enqueue_three(world)
    bucket = getattr(world.services.resources, f"{kind}_bucket")
    action = "s3:GetObject*" if kind == "input" else "s3:PutObject"
    world.deny(bucket, action)

    # When
    outcomes = world.convert(manifests, spark)

    # Then nothing has changed, and the row names the permission
    check_nothing_was_used_up(world, manifests, outcomes)
    assert all(action.removesuffix("*") in str(world.row(manifest).reason) for manifest in manifests)

    # When it is granted, the next run converts everything
    world.allow(bucket)
    check_everything_is_published(world, world.convert(manifests, spark, "run-2"), 48)


@pytest.mark.parametrize("lane", list(Lane))
def test_a_denied_object_waits_and_its_neighbours_are_published(
    world: ConversionWorld, spark: SparkSession, lane: Lane
) -> None:
    # Given a manifest with one denied file, whose key has the names of errors, one that was deleted, and a good one
    world.configure("batch", max_attempts=1)
    key = "orders/AccessDenied/InvalidRange.json"
    gone = world.put("orders/gone.json", b'{"a":"gone"}\n')
    files = [world.put(key, b'{"a":"denied"}\n'), gone, world.put("orders/b.json", b'{"a":"b"}\n')]
    mixed = world.enqueue(files, lane)
    input_bucket = world.services.resources.input_bucket
    world.services.s3.delete_object(Bucket=input_bucket, Key=gone.key, VersionId=str(gone.version_id))
    world.deny(input_bucket, "s3:GetObject*", key)

    # When
    outcomes = world.convert([mixed], spark)

    # Then the denied file alone waits, it is not called bad input, and nothing of it has used up a try
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

    # When it is allowed / Then the next run publishes it
    world.allow(input_bucket)
    assert [outcome.state for outcome in world.convert([denied], spark, "run-2")] == ["DONE"]
    assert sorted(str(row["a"]) for row in world.lake()) == ["b", "denied"]


def test_a_run_that_may_not_work_claims_nothing_and_says_why_once(world: ConversionWorld, spark: SparkSession) -> None:
    # Given a denied input bucket
    manifests = [world.enqueue([world.put(f"orders/{name}.json", b'{"a":1}\n')]) for name in "abc"]
    input_bucket = world.services.resources.input_bucket
    world.deny(input_bucket, "s3:GetObject*")
    arguments = {"run": world.put_run_document(manifests)}

    # When
    code = batch_job.main.run(world.context(spark, "run-1"), arguments)

    # Then there is one alarm, and the verdict finds the permission in the ledger
    assert code == 1
    (alarm,) = [line for line in world.log_lines if line.startswith("ALARM")]
    assert alarm.startswith("ALARM run run-1 does not begin: s3:GetObject")
    assert [world.row(manifest).attempt for manifest in manifests] == [0, 0, 0]
    tally = Tally(now=world.clock())
    for manifest in manifests:
        tally.add(world.row(manifest))
    verdict = judge(tally)
    assert verdict.outcome == ExecutionOutcome.FAILED
    assert "s3:GetObject" in verdict.message
    # And no further job run is started for them
    assert read_denied(world.services.s3, world.services.resources.control_bucket, arguments["run"]) == set(manifests)

    # When it is granted / Then a run that a person starts converts everything
    world.allow(input_bucket)
    assert batch_job.main.run(world.context(spark, "run-2"), arguments) == 0
    assert world.lake() == [{"a": "1"}] * 3


def test_one_denied_object_does_not_stop_a_run_before_it_begins(
    world: ConversionWorld, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Given a run whose first manifest has only a denied file, and no other manifest is in the sample
    monkeypatch.setattr(preflight, "MAX_SAMPLED", 0)
    manifests = [world.enqueue([world.put(f"orders/{name}.json", b'{"a":1}\n')]) for name in "ab"]
    world.deny(world.services.resources.input_bucket, "s3:GetObject*", "orders/a.json")

    # When
    code = batch_job.main.run(world.context(spark, "run-1"), {"run": world.put_run_document(manifests)})

    # Then
    assert code == 1
    assert [world.row(manifest).state for manifest in manifests] == ["QUEUED", "DONE"]
    (alarm,) = [line for line in world.log_lines if line.startswith("ALARM")]
    assert alarm.startswith("ALARM 1 manifest waits for the next run, without having used up an attempt: s3:GetObject")

    # When another job run of the same execution follows, with a manifest that waits for it
    manifests.append(world.enqueue([world.put("orders/c.json", b'{"a":1}\n')]))
    attempts = world.row(manifests[0]).attempt
    assert batch_job.main.run(world.context(spark, "run-2"), {"run": world.put_run_document(manifests)}) == 0
    # Then it leaves out the denied one
    assert [world.row(manifest).state for manifest in manifests] == ["QUEUED", "DONE", "DONE"]
    assert world.row(manifests[0]).attempt == attempts
    assert any(line.startswith("1 manifest is left out") for line in world.log_lines)


def test_a_publish_that_is_refused_is_finished_by_the_next_run(world: ConversionWorld, spark: SparkSession) -> None:
    # Given a lake whose objects may be written and not read
    manifest = world.enqueue([world.put("orders/a.json", BODY)])
    lake_bucket = world.services.resources.lake_bucket
    world.deny(lake_bucket, "s3:GetObject")

    # When
    (outcome,) = world.convert([manifest], spark)

    # Then the commit is kept, and the row names the permission
    row = world.row(manifest)
    assert (outcome.state, row.state, row.tries) == ("WAITING", State.PUBLISHING, 1)
    assert "s3:GetObject is denied" in str(row.reason)

    # When it is granted / Then nothing is converted again
    world.allow(lake_bucket)
    assert [item.state for item in world.convert([manifest], spark, "run-2")] == ["DONE"]
    assert world.row(manifest).attempt == 1
    check_published_once(world, manifest)


@pytest.mark.parametrize("operation", ["get_object", "update_item"])
def test_load_is_waited_for_in_the_same_run(world: ConversionWorld, spark: SparkSession, operation: str) -> None:
    # Given a service that does not answer the driver until the run has waited
    manifest = world.enqueue([world.put("orders/a.json", BODY)])
    leave_unanswered(world, operation, 1)
    # When
    (outcome,) = world.convert([manifest], spark)
    # Then
    assert outcome.state == "DONE"
    assert len(world.waits) == 1
    check_published_once(world, manifest)


def test_a_run_waits_a_few_times_only(world: ConversionWorld, spark: SparkSession) -> None:
    # Given an S3 that never answers the driver
    world.configure("batch", max_attempts=1)
    manifest = world.enqueue([world.put("orders/a.json", BODY)])
    leave_unanswered(world, "get_object", math.inf)
    # When
    (outcome,) = world.convert([manifest], spark)
    # Then each wait is longer than the one before
    assert outcome.state == "WAITING"
    assert world.waits == sorted(world.waits)
    assert len(world.waits) == MAX_WAITS
    assert (world.row(manifest).state, world.row(manifest).tries) == (State.QUEUED, 0)


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
    input_bucket = world.services.resources.input_bucket
    world.deny(input_bucket, "s3:GetObject*")

    # When
    with pytest.raises(BlockedRunError, match="s3:GetObject"):
        InboxStream(world.context(spark, "run-1", lambda: datetime.now(UTC))).run()

    # Then no attempt is used up, and alarms say why
    assert [(world.row(item).state, world.row(item).tries) for item in manifests] == [(State.QUEUED, 0)] * 2
    alarms = [line for line in world.log_lines if line.startswith("ALARM")]
    assert alarms
    assert all("s3:GetObject" in alarm for alarm in alarms)

    # When it is granted / Then the same pointers are converted, although none was written again
    world.allow(input_bucket)
    InboxStream(world.context(spark, "run-2", lambda: datetime.now(UTC))).run()
    assert world.lake() == [{"a": "1"}] * 2


def test_a_publish_that_is_refused_does_not_end_the_stream(world: ConversionWorld, spark: SparkSession) -> None:
    # Given a lake whose objects of one dataset may be written and not read
    manifests = [
        enqueue_for_stream(world, "a"),
        world.enqueue([world.put("trips/a.json", b'{"a":1}\n')], Lane.STREAM, "trips"),
    ]
    world.deny(world.services.resources.lake_bucket, "s3:GetObject", "orders/*")

    # When
    outcomes = convert_manifests(world.context(spark, "run-1"), manifests)

    # Then it waits for the sweep, its pointer may be deleted, and an alarm names the permission
    assert {outcome.manifest: outcome.state for outcome in outcomes} == dict(
        zip(manifests, ("WAITING", "DONE"), strict=True)
    )
    assert world.row(manifests[0]).state == State.PUBLISHING
    (alarm,) = [line for line in world.log_lines if line.startswith("ALARM")]
    assert "s3:GetObject is denied" in alarm


def test_a_denied_object_does_not_hold_up_the_pointers_behind_it(world: ConversionWorld, spark: SparkSession) -> None:
    # Given a micro-batch with only a denied object, and another manifest whose pointer is in the next one
    denied, good = enqueue_for_stream(world, "denied"), enqueue_for_stream(world, "good")
    world.deny(world.services.resources.input_bucket, "s3:GetObject*", "orders/denied.json")

    # When
    context = world.context(spark, "run-1")
    (first,) = convert_manifests(context, [denied])
    (second,) = convert_manifests(context, [good])

    # Then it waits for another pointer, which the sweep writes
    assert (first.state, second.state) == ("WAITING", "DONE")
    assert (world.row(denied).state, world.row(denied).tries) == (State.QUEUED, 0)
    (alarm,) = [line for line in world.log_lines if line.startswith("ALARM")]
    assert "orders/denied.json" in alarm
