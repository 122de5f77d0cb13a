"""Urgent pointers: converted during a micro-batch, before every peak file that has not begun, and deleted once."""

import threading
from datetime import timedelta
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pytest
from botocore.exceptions import ClientError

from lake.errors import TransientError
from lake.ledger import CostShare, State
from lake.manifest import ObjectVersion
from streaming_job import inbox, micro_batch
from streaming_job.inbox import has_open_manifests
from streaming_job.micro_batch import PORTIONS, convert_portion
from streaming_job.stream import HELD_WAIT, POOL
from tests.model.fake_s3 import after_empty_pages
from tests.unit.streaming_job.conftest import PATIENCE_SECONDS, StreamLane
from transform import preflight
from transform.give_up import EnvironmentFault
from transform.outcome import HELD, WAITING, ConversionOutcome
from transform.preflight import check_environment
from transform.source import DeniedFileError


def test_an_urgent_file_does_not_wait_for_the_triggers_of_a_peak_backlog(
    lane: StreamLane, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Given a micro-batch that does not end, and peak manifests for many more
    peak = [lane.put() for _ in range(6 * PORTIONS)]
    lane.slow.update(peak)
    batch = threading.Thread(target=lane.batch)
    batch.start()
    assert lane.slow_begun.acquire(timeout=PATIENCE_SECONDS)
    # When an urgent file arrives, the youngest of all, and S3 first skips many deleted pointers
    late, s3 = lane.put(urgent=True), lane.world.raw_s3
    with monkeypatch.context() as patched:
        patched.setattr(s3, "list_objects_v2", after_empty_pages(s3.list_objects_v2))
        lane.look()
    # Then it is converted with its own share of the cores, and none of the others has ended
    assert lane.pools[late] == POOL
    assert not lane.world.row(late).open
    assert all(lane.world.row(manifest).open for manifest in peak)
    # And its pointer is deleted, and the pointers of the others are not
    assert lane.pointers() == peak
    lane.gate.set()
    batch.join()


def test_a_micro_batch_reads_every_other_pointer_and_no_urgent_one(lane: StreamLane) -> None:
    lane.put(urgent=True)
    other = lane.put()
    assert list(lane.run._find_pointers(urgent=False)) == [other]


def test_within_a_micro_batch_urgent_manifests_are_first_and_then_the_oldest(lane: StreamLane) -> None:
    # Given pointers in any order; one of an urgent manifest has an ordinary name
    old, young, late = lane.put(), lane.put(), lane.put(urgent=True)
    # When, Then
    assert list(micro_batch.input_sizes(lane.context, ["unknown", young, old, late])) == [late, old, young, "unknown"]


def test_the_cores_of_the_largest_cluster_have_work(lane: StreamLane) -> None:
    # Given more files than a cluster of 8 cores can convert in parallel, each with half a minute of work for a core
    lane.start(3)
    lane.slow.update(lane.put() for _ in range(12))
    # When
    batch = threading.Thread(target=lane.read)
    batch.start()
    # Then each core has one, and the others follow
    assert all(lane.slow_begun.acquire(timeout=PATIENCE_SECONDS) for _ in range(PORTIONS))
    assert len(lane.begun) == 8
    lane.gate.set()
    batch.join()
    assert lane.pointers() == []


def test_after_an_error_no_further_portion_begins(lane: StreamLane) -> None:
    lane.error = TransientError("no answer")
    for _ in range(5 * PORTIONS):
        lane.put()
    lane.read()
    assert lane.run._error is lane.error
    assert len(lane.begun) <= PORTIONS
    assert len(lane.pointers()) == 5 * PORTIONS


def test_a_damaged_row_delays_no_other_manifest(lane: StreamLane) -> None:
    # Given pointers to manifests, one of which has an incomplete row
    damaged, intact, peak = lane.put(urgent=True), lane.put(urgent=True), lane.put()
    key = {"pk": f"manifest#{damaged}", "sk": "manifest"}
    lane.world.dynamodb.update_item(TableName="ledger", Key=key, UpdateExpression="REMOVE manifest_sha256")
    lane.states[damaged] = [WAITING, WAITING]
    assert has_open_manifests(lane.context)
    # When
    lane.look()
    convert_portion(lane.context, [damaged, peak])
    # Then
    assert not lane.world.row(intact).open
    assert not lane.world.row(peak).open
    assert not has_open_manifests(lane.context)


def test_more_urgent_manifests_than_there_is_room_for_are_converted_oldest_first(lane: StreamLane) -> None:
    manifests = [lane.put(urgent=True) for _ in range(PORTIONS + 2)]
    lane.slow.update(manifests)
    lane.run.look_for_urgent()
    assert [name for item in lane.run._open for name in item.pointers] == manifests[:PORTIONS]
    lane.gate.set()
    lane.look()
    lane.look()
    assert sorted(lane.begun) == manifests
    assert lane.pointers() == []


def test_slow_urgent_files_do_not_keep_others_waiting(lane: StreamLane) -> None:
    # Given cores for much more input than slow files have, which arrive one after the other
    lane.start(101)
    for _ in range(2 * PORTIONS):
        lane.slow.add(lane.put(urgent=True))
        lane.run.look_for_urgent()
        assert lane.slow_begun.acquire(timeout=PATIENCE_SECONDS)
    # When a fast urgent file arrives, Then it is converted together with them
    converted = threading.Event()
    lane.run._record_work = lambda _: converted.set()  # type: ignore[method-assign,assignment]
    honest = lane.put(urgent=True)
    lane.run.look_for_urgent()
    assert converted.wait(PATIENCE_SECONDS)
    assert not lane.world.row(honest).open
    assert all(lane.world.row(manifest).open for manifest in lane.slow)
    # When every core has a slow file, Then the next one waits for one of them
    lane.run._max_open = len(lane.slow)
    waiting = lane.put(urgent=True)
    lane.run.look_for_urgent()
    assert not any(waiting in item.pointers for item in lane.run._open)
    lane.gate.set()
    lane.run._threads.shutdown(wait=True)


def test_pointers_of_manifests_that_are_being_converted_hide_no_others(
    lane: StreamLane, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Given as many urgent manifests as one listing returns, kept open by a slow file
    monkeypatch.setattr("streaming_job.stream.MAX_URGENT_POINTERS", 3)
    lane.start(101)
    flood = [lane.put(urgent=True) for _ in range(3)]
    lane.slow.add(flood[0])
    lane.run.look_for_urgent()
    # When another manifest arrives
    late = lane.put(urgent=True)
    lane.run.look_for_urgent()
    # Then it does not wait for them
    assert any(late in item.pointers for item in lane.run._open)
    lane.gate.set()
    lane.run._threads.shutdown(wait=True)
    assert lane.pointers() == []


def test_a_held_manifest_does_not_keep_a_run_from_ending(lane: StreamLane) -> None:
    # Given a manifest that another run holds for a while
    manifest = lane.put(urgent=True)
    lane.states[manifest] = [HELD, State.DONE]
    # When, Then its portion ends at once, its pointer stays, and the next look is not early
    lane.look()
    assert lane.run._open == []
    assert len(lane.pointers()) == 1
    assert not lane.run._wake.is_set()
    # When it is released, Then a later look converts it
    lane.look()
    assert len(lane.begun) == 1
    lane.world.wait(HELD_WAIT)
    lane.look()
    assert len(lane.begun) == 2
    assert lane.pointers() == []


def test_denied_files_do_not_end_a_run_that_has_read_others(lane: StreamLane, monkeypatch: pytest.MonkeyPatch) -> None:
    # Given a lane in which all waiting manifests are denied, more than are tried, and a run that has converted one
    monkeypatch.setattr(preflight, "MAX_SAMPLED", 1)
    denied = lane.put(urgent=True)
    monkeypatch.setattr(micro_batch, "check_environment", check_environment)

    def fetch(file: ObjectVersion, *_: int) -> bytes:
        if file.key != "orders/2.json":
            raise DeniedFileError(file.key) from ClientError({"Error": {"Code": "AccessDenied"}}, "GetObject")
        return b"{"

    monkeypatch.setattr(preflight, "Source", lambda *_: SimpleNamespace(fetch=fetch))
    read = ConversionOutcome(lane.put(), State.DONE, converted=CostShare("orders", 0))
    fault = EnvironmentFault("denied", "allow it", passing=False, denied=True)
    monkeypatch.setattr(micro_batch, "convert", lambda *_: [ConversionOutcome(denied, WAITING, fault=fault)])
    lane.world.ledger.manifests.fail(lane.world.row(read.manifest), "ended", lane.world.now)
    for _ in range(20):
        lane.put()
    lane.run._record_work([read])
    # When
    lane.look()
    # Then the run continues, and the sweep writes another pointer
    assert lane.run._error is None
    assert denied not in lane.pointers()


def test_requests_without_an_answer_end_the_run_and_leave_the_pointer_to_the_next_one(lane: StreamLane) -> None:
    # Given
    lane.put(urgent=True)
    lane.unanswered = True
    # When requests of the conversion get no answer, twice
    lane.look()
    # Then nothing else begins, and the next run finds the pointer
    lane.look()
    assert len(lane.begun) == 2
    assert "could not be converted now" in str(lane.run._error)
    assert len(lane.pointers()) == 1


def test_a_slow_listing_delays_only_the_end(lane: StreamLane, monkeypatch: pytest.MonkeyPatch) -> None:
    # Given an idle run, and an S3 that delays its listing
    run, gate, heartbeats = lane.run, threading.Event(), list[object]()

    def list_slowly(*_: object) -> list[Any]:
        assert gate.wait(PATIENCE_SECONDS)
        return []

    def record_heartbeat() -> None:
        heartbeats.append(lane.world.now)
        # A portion has ended; later, Spark has ended the query.
        run._wake.set()
        query.isActive = len(heartbeats) < 3

    monkeypatch.setattr(inbox, "list_objects", list_slowly)
    monkeypatch.setattr(run, "_record_heartbeat", record_heartbeat)
    monkeypatch.setattr("streaming_job.stream.MAX_LOOK_SECONDS", 0)
    lane.world.wait(timedelta(hours=1))
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
