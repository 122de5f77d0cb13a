"""Urgent pointers: converted during a micro-batch, before every peak file that has not begun, and deleted once."""

import json
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from datetime import timedelta
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pytest
from botocore.exceptions import ClientError

from lake.errors import TransientError
from lake.layout import INBOX, URGENT, pointer_key
from lake.ledger import CostShare, State
from lake.manifest import Lane, ObjectVersion
from streaming_job import inbox, micro_batch
from streaming_job.inbox import has_open_manifests
from streaming_job.micro_batch import PORTIONS, convert_portion
from streaming_job.stream import HELD_WAIT, POOL, InboxStream
from tests.model.fake_s3 import after_empty_pages
from tests.unit.lake.world import World
from tests.unit.streaming_job.test_stream import PATIENCE_SECONDS, context_of
from transform import preflight
from transform.give_up import EnvironmentFault
from transform.outcome import HELD, WAITING, ConversionOutcome
from transform.preflight import check_environment
from transform.source import DeniedFileError
from transform.task_model import ConversionContext

NO_ANSWER = EnvironmentFault("AWS could not be reached", "wait", passing=True)


@dataclass
class Stream:
    """A streaming run whose conversions only record their arguments."""

    world: World
    gate: threading.Event = field(default_factory=threading.Event)
    begun: list[tuple[str, str | None]] = field(default_factory=list)
    outcomes: list[ConversionOutcome] = field(default_factory=list)
    states: dict[str, list[str]] = field(default_factory=dict)
    lines: list[str] = field(default_factory=list)
    failing: bool = False
    unanswered: bool = False
    slow: set[str] = field(default_factory=set)
    """Manifests whose conversion waits for ``gate``."""
    slow_begun: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))
    max_workers: int = 2
    """With two, portions of 27 s of a core each are converted concurrently: one manifest of 1 GiB."""
    numbers: int = 0

    def __post_init__(self) -> None:
        context = context_of(self.world, stream={"max_workers": self.max_workers})
        self.context = replace(context, log=self.lines.append, wait=lambda _: None)
        self.run = InboxStream(self.context)
        self.run._record_work = self.outcomes.extend  # type: ignore[method-assign,assignment]

    def convert(self, manifests: list[str], context: ConversionContext) -> list[ConversionOutcome]:
        self.begun += [(manifest, context.pool) for manifest in manifests]
        if self.failing:
            raise TransientError("no answer")
        if self.slow.intersection(manifests):
            self.slow_begun.release()
            assert self.gate.wait(PATIENCE_SECONDS)
        found = []
        for manifest in manifests:
            state = (self.states.get(manifest) or [State.DONE]).pop(0)
            if state == State.DONE:
                self.world.ledger.manifests.fail(self.world.row(manifest), "ended", self.world.now)
            found.append(ConversionOutcome(manifest, state, fault=NO_ANSWER if self.unanswered else None))
        return found

    def put(self, *, urgent: bool) -> str:
        """A manifest with its pointer, each a second younger than the previous one."""
        self.numbers += 1
        manifest = self.world.manifest(f"{self.numbers}.json", lane=Lane.STREAM)
        name = f"20261120T{self.numbers:06d}{'0' * 20}"
        files = tuple(replace(file, size=1 << 30) for file in manifest.files)
        manifest = type(manifest)(name, Lane.STREAM, manifest.partition, f"{self.numbers:06d}", files, urgent)
        self.world.enqueued(manifest)
        key = pointer_key(name, f"{self.numbers:04d}", urgent=urgent)
        self.world.raw_s3.put_object(Bucket="control", Key=key, Body=json.dumps({"manifest": name}).encode())
        return name

    def pointers(self) -> list[str]:
        return self.world.keys("control", INBOX)

    def read(self) -> None:
        """A micro-batch, and the end of its portions."""
        self.run._run_micro_batch(Mock(), 0)
        self.run._threads.shutdown(wait=True)

    def look(self) -> None:
        """One check of the inbox, and the end of its portions."""
        self.run.look_for_urgent()
        self.run._threads.shutdown(wait=True)
        self.run._threads = ThreadPoolExecutor()


@pytest.fixture
def stream(world: World, monkeypatch: pytest.MonkeyPatch) -> Stream:
    stream = Stream(world)
    monkeypatch.setattr(micro_batch, "convert", stream.convert)
    monkeypatch.setattr(micro_batch, "check_environment", lambda *_: None)
    return stream


def test_an_urgent_file_does_not_wait_for_the_triggers_of_a_peak_backlog(
    stream: Stream, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Given a micro-batch that does not end, and peak manifests for many more
    peak = [stream.put(urgent=False) for _ in range(6 * PORTIONS)]
    stream.slow.update(peak)
    batch = threading.Thread(target=stream.run._run_micro_batch, args=(None, 0))
    batch.start()
    assert stream.slow_begun.acquire(timeout=PATIENCE_SECONDS)
    # When an urgent file arrives, the youngest of all, and S3 first skips many deleted pointers
    late, s3 = stream.put(urgent=True), stream.world.raw_s3
    with monkeypatch.context() as patched:
        patched.setattr(s3, "list_objects_v2", after_empty_pages(s3.list_objects_v2))
        stream.look()
    # Then it is converted with its own share of the cores, and none of the others has ended
    assert [(item.manifest, item.state) for item in stream.outcomes] == [(late, State.DONE)]
    assert (late, POOL) in stream.begun
    assert not stream.world.row(late).open
    assert all(stream.world.row(manifest).open for manifest in peak)
    # And its pointer is deleted, and the pointers of the others are not
    assert [key for key in stream.pointers() if key.startswith(f"{INBOX}{URGENT}")] == []
    assert len(stream.pointers()) == len(peak)
    stream.gate.set()
    batch.join()


def test_a_micro_batch_reads_every_other_pointer_and_no_urgent_one(stream: Stream) -> None:
    stream.put(urgent=True)
    other = stream.put(urgent=False)
    assert list(stream.run._find_pointers(urgent=False)) == [other]


def test_within_a_micro_batch_urgent_manifests_are_first_and_then_the_oldest(stream: Stream) -> None:
    # Given pointers in any order; one of an urgent manifest has an ordinary name
    old, young, late = stream.put(urgent=False), stream.put(urgent=False), stream.put(urgent=True)
    # When, Then
    assert list(micro_batch.input_sizes(stream.context, ["unknown", young, old, late])) == [late, old, young, "unknown"]


def test_the_cores_of_the_largest_cluster_have_work(stream: Stream, monkeypatch: pytest.MonkeyPatch) -> None:
    # Given more files than a cluster of 8 cores can convert in parallel, each with half a minute of work for a core
    stream = Stream(stream.world, max_workers=3)
    monkeypatch.setattr(micro_batch, "convert", stream.convert)
    stream.slow.update(stream.put(urgent=False) for _ in range(12))
    # When
    batch = threading.Thread(target=stream.read)
    batch.start()
    # Then each core has one, and the others follow
    assert all(stream.slow_begun.acquire(timeout=PATIENCE_SECONDS) for _ in range(PORTIONS))
    assert len(stream.begun) == 8
    stream.gate.set()
    batch.join()
    assert stream.pointers() == []


@pytest.mark.parametrize(
    ("code", "goes_on"), [("ThrottlingException", True), ("InternalServerError", True), ("AccessDenied", False)]
)
def test_a_ledger_that_does_not_answer_for_a_while_only_delays_a_micro_batch(
    stream: Stream, monkeypatch: pytest.MonkeyPatch, code: str, goes_on: bool
) -> None:
    # Given a ledger that refuses the first read
    stream.put(urgent=False)
    refusal = ClientError({"Error": {"Code": code, "Message": ""}}, "GetItem")
    with monkeypatch.context() as patch:
        patch.setattr("streaming_job.stream.input_sizes", Mock(side_effect=refusal))
        stream.run._run_micro_batch(Mock(), 0)
    # When, Then the next micro-batch converts the manifest; a denied read ends the run
    stream.read()
    assert len(stream.begun) == goes_on
    assert (stream.run._error is None) == goes_on


def test_after_an_error_no_further_portion_begins(stream: Stream) -> None:
    stream.failing = True
    for _ in range(5 * PORTIONS):
        stream.put(urgent=False)
    stream.read()
    assert "no answer" in str(stream.run._error)
    assert len(stream.begun) <= PORTIONS
    assert len(stream.pointers()) == 5 * PORTIONS


def test_a_damaged_row_delays_no_other_manifest(stream: Stream) -> None:
    # Given pointers to manifests, one of which has an incomplete row
    damaged, intact, peak = stream.put(urgent=True), stream.put(urgent=True), stream.put(urgent=False)
    key = {"pk": f"manifest#{damaged}", "sk": "manifest"}
    stream.world.dynamodb.update_item(TableName="ledger", Key=key, UpdateExpression="REMOVE manifest_sha256")
    stream.states[damaged] = [WAITING, WAITING]
    assert has_open_manifests(stream.context)
    # When
    stream.look()
    convert_portion(stream.context, [damaged, peak])
    # Then
    assert not stream.world.row(intact).open
    assert not stream.world.row(peak).open
    assert not has_open_manifests(stream.context)


def test_more_urgent_manifests_than_there_is_room_for_are_converted_oldest_first(stream: Stream) -> None:
    manifests = [stream.put(urgent=True) for _ in range(PORTIONS + 2)]
    stream.slow.update(manifests)
    stream.run.look_for_urgent()
    assert [name for item in stream.run._open for name in item.pointers] == manifests[:PORTIONS]
    stream.gate.set()
    stream.look()
    stream.look()
    assert sorted(name for name, _ in stream.begun) == manifests
    assert stream.pointers() == []


def test_slow_urgent_files_do_not_keep_others_waiting(stream: Stream, monkeypatch: pytest.MonkeyPatch) -> None:
    # Given cores for much more input than slow files have, which arrive one after the other
    stream = Stream(stream.world, max_workers=101)
    monkeypatch.setattr(micro_batch, "convert", stream.convert)
    for _ in range(2 * PORTIONS):
        stream.slow.add(stream.put(urgent=True))
        stream.run.look_for_urgent()
        assert stream.slow_begun.acquire(timeout=PATIENCE_SECONDS)
    # When a fast urgent file arrives, Then it is converted together with them
    converted = threading.Event()
    stream.run._record_work = lambda _: converted.set()  # type: ignore[method-assign,assignment]
    honest = stream.put(urgent=True)
    stream.run.look_for_urgent()
    assert converted.wait(PATIENCE_SECONDS)
    assert not stream.world.row(honest).open
    assert all(stream.world.row(manifest).open for manifest in stream.slow)
    # When every core has a slow file, Then the next one waits for one of them
    stream.run._max_open = len(stream.slow)
    waiting = stream.put(urgent=True)
    stream.run.look_for_urgent()
    assert not any(waiting in item.pointers for item in stream.run._open)
    stream.gate.set()
    stream.run._threads.shutdown(wait=True)


def test_pointers_of_manifests_that_are_being_converted_hide_no_others(
    stream: Stream, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Given as many urgent manifests as one listing returns, kept open by a slow file
    monkeypatch.setattr("streaming_job.stream.MAX_URGENT_POINTERS", 3)
    stream = Stream(stream.world, max_workers=101)
    monkeypatch.setattr(micro_batch, "convert", stream.convert)
    flood = [stream.put(urgent=True) for _ in range(3)]
    stream.slow.add(flood[0])
    stream.run.look_for_urgent()
    # When another manifest arrives
    late = stream.put(urgent=True)
    stream.run.look_for_urgent()
    # Then it does not wait for them
    assert any(late in item.pointers for item in stream.run._open)
    stream.gate.set()
    stream.run._threads.shutdown(wait=True)
    assert stream.pointers() == []


def test_a_held_manifest_does_not_keep_a_run_from_ending(stream: Stream) -> None:
    # Given a manifest that another run holds for a while
    manifest = stream.put(urgent=True)
    stream.states[manifest] = [HELD, State.DONE]
    # When, Then its portion ends at once, its pointer stays, and the next look is not early
    stream.look()
    assert stream.run._open == []
    assert len(stream.pointers()) == 1
    assert not stream.run._wake.is_set()
    # When it is released, Then a later look converts it
    stream.look()
    assert len(stream.begun) == 1
    stream.world.wait(HELD_WAIT)
    stream.look()
    assert len(stream.begun) == 2
    assert stream.pointers() == []


def test_denied_files_do_not_end_a_run_that_has_read_others(stream: Stream, monkeypatch: pytest.MonkeyPatch) -> None:
    # Given a lane in which all waiting manifests are denied, more than are tried, and a run that has converted one
    monkeypatch.setattr(preflight, "MAX_SAMPLED", 1)
    denied = stream.put(urgent=True)
    monkeypatch.setattr(micro_batch, "check_environment", check_environment)

    def fetch(file: ObjectVersion, *_: int) -> bytes:
        if file.key != "orders/2.json":
            raise DeniedFileError(file.key) from ClientError({"Error": {"Code": "AccessDenied"}}, "GetObject")
        return b"{"

    monkeypatch.setattr(preflight, "Source", lambda *_: SimpleNamespace(fetch=fetch))
    read = ConversionOutcome(stream.put(urgent=False), State.DONE, converted=CostShare("orders", 0))
    fault = EnvironmentFault("denied", "allow it", passing=False, denied=True)
    monkeypatch.setattr(micro_batch, "convert", lambda *_: [ConversionOutcome(denied, WAITING, fault=fault)])
    stream.world.ledger.manifests.fail(stream.world.row(read.manifest), "ended", stream.world.now)
    for _ in range(20):
        stream.put(urgent=False)
    InboxStream._record_work(stream.run, [read])
    # When
    stream.look()
    # Then the run continues, and the sweep writes another pointer
    assert stream.run._error is None
    assert [key for key in stream.pointers() if URGENT in key] == []


@pytest.mark.parametrize(("cause", "error"), [("failing", "no answer"), ("unanswered", "could not be converted now")])
def test_an_error_ends_the_run_and_leaves_the_pointer_to_the_next_one(stream: Stream, cause: str, error: str) -> None:
    # Given
    stream.put(urgent=True)
    setattr(stream, cause, True)
    # When the conversion fails
    stream.look()
    # Then nothing else begins, and the next run finds the pointer
    stream.look()
    assert len(stream.begun) == 1 + stream.unanswered
    assert error in str(stream.run._error)
    assert len(stream.pointers()) == 1


def test_a_pointer_that_could_not_be_deleted_is_left_to_the_next_run(
    stream: Stream, monkeypatch: pytest.MonkeyPatch
) -> None:
    stream.put(urgent=True)

    def refuse(**_: object) -> None:
        raise ClientError({"Error": {"Code": "SlowDown", "Message": ""}}, "DeleteObject")

    with monkeypatch.context() as patch:
        patch.setattr(stream.world.raw_s3, "delete_object", refuse)
        stream.look()
    assert "1 pointer that was read stays in the inbox" in stream.lines[-1]
    assert len(stream.pointers()) == 1
    # And this run does not read it again
    stream.look()
    assert len(stream.begun) == 1
    stream.run._left.clear()
    stream.look()
    assert stream.pointers() == []


@pytest.mark.parametrize(("code", "goes_on"), [("SlowDown", True), ("AccessDenied", False)])
def test_a_listing_without_an_answer_is_repeated(
    stream: Stream, monkeypatch: pytest.MonkeyPatch, code: str, goes_on: bool
) -> None:
    stream.put(urgent=True)

    def refuse(*_: object) -> None:
        raise ClientError({"Error": {"Code": code, "Message": ""}}, "ListObjectsV2")

    with monkeypatch.context() as patch:
        patch.setattr(inbox, "list_objects", refuse)
        with nullcontext() if goes_on else pytest.raises(ClientError, match=code):
            stream.look()
    stream.look()
    assert len(stream.begun) == 1


def test_a_slow_listing_delays_only_the_end(stream: Stream, monkeypatch: pytest.MonkeyPatch) -> None:
    # Given an idle run, and an S3 that delays its listing
    run, gate, heartbeats = stream.run, threading.Event(), list[object]()

    def list_slowly(*_: object) -> list[Any]:
        assert gate.wait(PATIENCE_SECONDS)
        return []

    def record_heartbeat() -> None:
        heartbeats.append(stream.world.now)
        # A portion has ended; later, Spark has ended the query.
        run._wake.set()
        query.isActive = len(heartbeats) < 3

    monkeypatch.setattr(inbox, "list_objects", list_slowly)
    monkeypatch.setattr(run, "_record_heartbeat", record_heartbeat)
    monkeypatch.setattr("streaming_job.stream.MAX_LOOK_SECONDS", 0)
    stream.world.wait(timedelta(hours=1))
    query: Any = SimpleNamespace(isActive=True, awaitTermination=Mock(side_effect=TransientError("ended")))
    # When, Then there are heartbeats, and the run does not end by itself
    with pytest.raises(TransientError, match="ended"):
        run._watch(query)
    assert not run._may_end()
    # When the listing has ended, Then another one uses the free room, and the run may end
    run._wake.clear()
    gate.set()
    run._threads.shutdown(wait=True)
    assert run._wake.is_set()
    assert run._may_end()
