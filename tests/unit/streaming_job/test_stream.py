"""The streaming job: the time spent on its micro-batch, the condition for its end, and the inboxes that it reads."""

import threading
from datetime import timedelta
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pytest
from botocore.exceptions import ClientError, EndpointConnectionError
from pyspark.errors import PySparkException

from lake.errors import TransientError
from lake.layout import list_objects, pointer_key
from lake.ledger import State
from lake.ledger.stream import Stream
from lake.manifest import Lane
from lake.shards import SHARD_ARGUMENT
from lake.speed import InputSize
from router.stream.runs import MAX_HEARTBEAT_AGE
from streaming_job import main, stream
from streaming_job.micro_batch import PORTIONS
from streaming_job.stream import InboxStream, OpenConversion
from tests.unit.lake.world import World
from tests.unit.streaming_job.conftest import PATIENCE_SECONDS, StreamLane, context_of
from transform.outcome import HELD, ConversionOutcome


def test_a_heartbeat_has_the_begin_of_the_micro_batch_until_its_end(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Given heartbeats during and after the conversion of manifests, and a ledger without other writes of the stream
    seen, found = [], InboxStream(context_of(world))
    world.raw_s3.put_object(Bucket="control", Key=pointer_key("m", "n", urgent=False), Body=b"")

    def convert(*_: object, **__: object) -> list[Any]:
        found._record_heartbeat()
        seen.append(world.ledger.stream.get().micro_batch_since)
        return []

    monkeypatch.setattr(stream, "convert_portion", convert)
    # When
    found._run_micro_batch(Mock(), 0)
    found._record_heartbeat()
    # Then
    assert seen == [world.now.isoformat(timespec="milliseconds")]
    assert world.ledger.stream.get().micro_batch_since is None


def test_a_run_ends_only_while_no_urgent_manifest_is_converted(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    # Given a run outside its window that was idle for long, but converts an urgent manifest, and another one that waits
    found = InboxStream(context_of(world))
    world.wait(timedelta(hours=1))
    found._open.append(OpenConversion(world.now, {}, InputSize(0, 0), urgent=True))
    row = world.queued("a.json", lane=Lane.STREAM)
    world.raw_s3.put_object(Bucket="control", Key=pointer_key(row.id, "n", urgent=True), Body=b"")
    monkeypatch.setattr(found._threads, "submit", Mock())
    assert not found._may_end()
    # When it is asked to stop, Then no manifest begins
    world.ledger.stream.request_stop(True)
    assert not found._may_end()
    found.look_for_urgent()
    assert len(found._open) == 1
    # When the next window begins, Then the waiting one begins
    world.ledger.stream.open_window((world.now + timedelta(hours=1)).isoformat())
    assert not found._may_end()
    found.look_for_urgent()
    assert len(found._open) == 2
    # When they have ended, and it is asked to stop again, Then it ends
    found._open.clear()
    world.ledger.stream.request_stop(True)
    assert found._may_end()


def test_a_run_reports_that_it_is_alive_however_seldom_its_trigger_is(world: World) -> None:
    # Given a trigger once an hour
    found = InboxStream(context_of(world))
    object.__setattr__(found._context.settings.stream, "trigger_seconds", 3600)
    waits: list[float] = []
    found._wake = SimpleNamespace(wait=waits.append, clear=list)  # type: ignore[assignment]
    world.wait(timedelta(hours=1))
    # When, Then it reads its row several times while a heartbeat is valid
    query: Any = SimpleNamespace()
    found._watch(query)
    assert 3 * timedelta(seconds=waits[0]) < MAX_HEARTBEAT_AGE


@pytest.mark.parametrize("operation", ["record_heartbeat", "get"])
@pytest.mark.parametrize(
    ("code", "goes_on"), [("ProvisionedThroughputExceededException", True), ("AccessDenied", False)]
)
def test_a_ledger_that_does_not_answer_for_a_while_does_not_end_the_run(
    world: World, monkeypatch: pytest.MonkeyPatch, operation: str, code: str, goes_on: bool
) -> None:
    # Given a run that could end, and a ledger that is throttled, or denied, at first
    found, original = InboxStream(context_of(world)), getattr(Stream, operation)
    found._wake = SimpleNamespace(wait=lambda _: None, clear=list)  # type: ignore[assignment]
    refusals = [ClientError({"Error": {"Code": code}}, "UpdateItem")] * 3
    world.wait(timedelta(hours=1))

    def refuse(*arguments: Any) -> Any:
        if refusals:
            raise refusals.pop()
        return original(*arguments)

    monkeypatch.setattr(Stream, operation, refuse)
    query: Any = SimpleNamespace(isActive=True)
    # When, Then
    if goes_on:
        found._watch(query)
        assert refusals == []
    else:
        with pytest.raises(ClientError, match=code):
            found._watch(query)


def test_a_ledger_that_no_longer_answers_ends_the_run(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    # Given a run that can reach the ledger for only three minutes
    found, begun = InboxStream(context_of(world)), world.now
    original = Stream.record_heartbeat

    def wait(_: float) -> None:
        world.wait(timedelta(minutes=1))
        assert world.now - begun < timedelta(hours=1)

    def record_heartbeat(row: Stream, run: str, now: Any, micro_batch_since: Any) -> None:
        if now - begun > timedelta(minutes=3):
            raise EndpointConnectionError(endpoint_url="https://dynamodb")
        original(row, run, now, micro_batch_since)

    found._wake = SimpleNamespace(wait=wait, clear=list)  # type: ignore[assignment]
    monkeypatch.setattr(Stream, "record_heartbeat", record_heartbeat)
    # When, Then
    query: Any = SimpleNamespace(isActive=True)
    with pytest.raises(EndpointConnectionError):
        found._watch(query)
    assert world.now - begun == timedelta(minutes=3) + stream.MAX_SILENCE + timedelta(minutes=1)


def test_a_pointer_that_cannot_be_deleted_keeps_no_run_from_being_idle(world: World) -> None:
    found = InboxStream(context_of(world))
    world.wait(timedelta(hours=1))
    # When each check finds an ended manifest, Then the run ends
    found._record_work([ConversionOutcome("m", "DONE")])
    assert found._may_end()
    # And a manifest that another run holds is work
    found._record_work([ConversionOutcome("m", HELD)])
    assert not found._may_end()


def test_a_pointer_that_is_put_while_the_run_reports_its_end_keeps_it_going(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Given a function that still sees the heartbeat, so that it starts no other run, and puts its pointer then
    found, end = InboxStream(context_of(world)), Stream.end
    world.wait(timedelta(hours=1))

    def put_and_end(row: Stream) -> None:
        manifest = world.queued("a.json", lane=Lane.STREAM).id
        world.raw_s3.put_object(Bucket="control", Key=pointer_key(manifest, "n", urgent=True), Body=b"")
        end(row)

    monkeypatch.setattr(Stream, "end", put_and_end)
    # When, Then
    assert not found._may_end()
    assert world.ledger.stream.get().heartbeat_at is not None


def test_one_slow_file_does_not_stop_the_micro_batches(lane: StreamLane) -> None:
    # Given a micro-batch with a slow file
    slow = lane.put()
    lane.slow = {slow}
    lane.batch()
    # When others follow, one with a second pointer to that file, Then they end, and the run does not
    lane.world.wait(timedelta(hours=1))
    fast = lane.put()
    lane.point(slow)
    lane.batch()
    lane.wait_until_open(1)
    lane.world.ledger.stream.request_stop(True)
    assert not lane.run._may_end()
    assert lane.begun == [slow, fast]
    assert lane.pointers() == [slow, slow]
    # When the file has ended, Then the run ends, and leaves that pointer to the next one
    lane.gate.set()
    lane.wait_until_open(0)
    assert lane.pointers() == [slow]
    assert lane.run._may_end()
    # And then no further one begins
    lane.put()
    lane.read()
    assert lane.begun == [slow, fast]


def test_pointers_that_cannot_be_deleted_do_not_block_others(lane: StreamLane, monkeypatch: pytest.MonkeyPatch) -> None:
    # Given an inbox that denies deletions, and micro-batches of one pointer
    denied: Any = {"Error": {"Code": "AccessDenied", "Message": ""}, "ResponseMetadata": {"HTTPStatusCode": 403}}
    monkeypatch.setattr(lane.world.raw_s3, "delete_object", Mock(side_effect=ClientError(denied, "DeleteObject")))
    monkeypatch.setattr(stream, "MAX_POINTERS_PER_TRIGGER", 1)
    # When, Then each one takes the next pointer, and the alarm has the permission
    first, second = lane.put(), lane.put()
    for _ in range(3):
        lane.read()
    assert lane.begun == [first, second]
    alarm, _ = [line for line in lane.lines if line.startswith("ALARM")]
    assert "1 pointer that was read stays in the inbox: s3:DeleteObject is denied" in alarm
    # And another pointer to one of them, which the sweep has written, is read
    lane.point(first)
    lane.read()
    assert lane.begun == [first, second, first]


@pytest.mark.parametrize("refusing", ["streaming_job.inbox.list_objects", "streaming_job.stream.input_sizes"])
@pytest.mark.parametrize(("code", "goes_on"), [("SlowDown", True), ("AccessDenied", False)])
def test_a_micro_batch_that_gets_no_answer_is_empty(
    lane: StreamLane, monkeypatch: pytest.MonkeyPatch, refusing: str, code: str, goes_on: bool
) -> None:
    # Given an S3 that refuses one listing, or a ledger that refuses one read
    manifest = lane.put()
    refusal = Mock(side_effect=ClientError({"Error": {"Code": code, "Message": ""}}, "ListObjectsV2"))
    with monkeypatch.context() as patch:
        patch.setattr(refusing, refusal)
        lane.batch()
    # When, Then the next micro-batch converts the manifest; a denied request ends the run
    lane.read()
    assert lane.begun == [manifest] * goes_on
    assert (lane.run._error is None) == goes_on


@pytest.mark.parametrize("ends", [True, False])
def test_an_inbox_that_no_longer_answers_ends_the_run(
    lane: StreamLane, monkeypatch: pytest.MonkeyPatch, ends: bool
) -> None:
    # Given an S3 that answers no listing for a while, after a portion that took as long
    lane.batch()
    lane.world.wait(stream.MAX_SILENCE)
    listing, refusal = list_objects, EndpointConnectionError(endpoint_url="https://s3")
    for minutes in (0, stream.MAX_SILENCE / timedelta(minutes=1)):
        monkeypatch.setattr("streaming_job.inbox.list_objects", Mock(side_effect=refusal))
        lane.world.wait(timedelta(minutes=minutes))
        lane.run.look_for_urgent()
        assert lane.run._error is None
        if not ends:
            monkeypatch.setattr("streaming_job.inbox.list_objects", listing)
            lane.batch()
    # When it answers none for longer, Then the run ends, because another one has another machine
    monkeypatch.setattr("streaming_job.inbox.list_objects", Mock(side_effect=refusal))
    lane.world.wait(timedelta(seconds=1))
    lane.batch()
    assert (lane.run._error is refusal) == ends


@pytest.mark.parametrize("error", [TransientError, PySparkException])
@pytest.mark.parametrize("denied", [False, True])
def test_a_run_reports_the_error_that_ends_it_before_it_waits_for_its_conversions(
    lane: StreamLane, monkeypatch: pytest.MonkeyPatch, denied: bool, error: type[Exception]
) -> None:
    # Given a run that meets an error, maybe of Spark, while a micro-batch continues, and a query that waits for it
    def start(_: str) -> Any:
        batch = lane.fill()
        return SimpleNamespace(isActive=True, stop=lambda: batch.join(PATIENCE_SECONDS))

    def shutdown(**_: Any) -> None:
        heartbeats.append(lane.world.ledger.stream.get().heartbeat_at)
        lane.gate.set()

    heartbeats, threads = list[str | None](), lane.run._threads
    lane.run._start = start  # type: ignore[method-assign,assignment]
    lane.run.look_for_urgent = Mock(side_effect=error("no answer"))  # type: ignore[method-assign]
    lane.run._wake.set()
    lane.run._threads = SimpleNamespace(submit=threads.submit, shutdown=shutdown)  # type: ignore[assignment]
    lane.world.ledger.stream.begin_run("jr_1", lane.world.now)
    # And a ledger that may refuse it
    if denied:
        refusal = ClientError({"Error": {"Code": "AccessDenied"}}, "UpdateItem")
        monkeypatch.setattr(Stream, "end", Mock(side_effect=refusal))
    # When it ends, Then a file that arrives from now on gets another run
    with pytest.raises(error, match="no answer"):
        lane.run.run()
    assert [heartbeat is None for heartbeat in heartbeats] == [not denied]
    lane.run._threads = threads


@pytest.mark.parametrize(("error", "ends"), [(None, True), (TransientError("no answer"), False)])
def test_a_run_that_should_stop_ends_after_its_micro_batch(
    lane: StreamLane, error: Exception | None, ends: bool
) -> None:
    # Given a micro-batch that fills the cores, and a portion that would follow
    lane.error = error
    batch = lane.fill()
    # When the run is asked to stop, Then no further portion begins, and the run waits for the open ones
    lane.world.ledger.stream.request_stop(True)
    assert not lane.run._may_end()
    batch.join(PATIENCE_SECONDS)
    assert len(lane.run._open) == PORTIONS
    # When they have ended, Then the run ends; an error ends it with that error
    lane.gate.set()
    lane.wait_until_open(0)
    assert lane.run._may_end() == ends
    assert len(lane.begun) == PORTIONS


def test_an_error_in_a_micro_batch_that_was_not_waited_for_ends_the_run(lane: StreamLane) -> None:
    # Given a micro-batch that the next one does not wait for
    slow = lane.put()
    lane.slow, lane.error = {slow}, TransientError("no answer")
    lane.batch()
    # When it fails, Then nothing else begins, and the next run finds the pointers
    lane.gate.set()
    lane.wait_until_open(0)
    fast = lane.put()
    lane.read()
    assert isinstance(lane.run._error, TransientError)
    assert lane.run._wake.is_set()
    assert lane.begun == [slow]
    assert lane.pointers() == [slow, fast]


def test_an_empty_micro_batch_lasts_while_a_portion_is_converted(
    lane: StreamLane, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Given a slow file, for which its micro-batch no longer waits
    lane.slow = {lane.put()}
    lane.batch()
    # When no pointer follows, Then Glue does not see short micro-batches, as in an idle run
    monkeypatch.setattr(stream, "PATIENCE_SHARE", 1)
    batch = threading.Thread(target=lane.batch)
    batch.start()
    batch.join(0.3)
    assert batch.is_alive()
    lane.gate.set()
    batch.join(PATIENCE_SECONDS)
    assert not batch.is_alive()
    # And in an idle run they are short
    lane.batch()


def test_held_manifests_do_not_block_others(lane: StreamLane, monkeypatch: pytest.MonkeyPatch) -> None:
    # Given micro-batches of one manifest, and a manifest that an earlier run still holds
    monkeypatch.setattr(stream, "MAX_POINTERS_PER_TRIGGER", 1)
    held = lane.put()
    lane.states[held] = [HELD, State.DONE]
    lane.read()
    # When, Then the next one takes the next pointer
    other = lane.put()
    lane.read()
    assert lane.begun == [held, other]
    # And the held ones are read again after a while
    lane.world.wait(stream.HELD_WAIT)
    lane.read()
    assert lane.begun == [held, other, held]
    assert lane.pointers() == []


def test_a_job_keeps_the_row_of_its_own_shard(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    stream = Mock()
    monkeypatch.setattr(main, "InboxStream", stream)
    # Given a run that was asked to stop, and has ended in the middle of a micro-batch
    world.ledger.stream.record_heartbeat("jr_0", world.now, world.now)
    world.ledger.stream.request_stop(True)
    # When the job of the second shard runs, and then the job of the first one, which has no such argument
    main.run(context_of(world, "jr_2"), {SHARD_ARGUMENT: "2"})
    main.run(context_of(world, "jr_1"), {})
    # Then
    row = world.ledger.stream
    assert [row.of(shard).get().run for shard in ("1", "2")] == ["jr_1", "jr_2"]
    assert row.get() == row.of("1").get()
    # And neither its micro-batch nor the request applies to the next run
    assert (row.get().micro_batch_since, row.get().stop_requested) == (None, False)
    assert [call.args[0].ledger.stream.shard for call in stream.call_args_list] == ["2", "1"]
