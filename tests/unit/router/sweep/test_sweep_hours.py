"""Hours: readers are notified when an hour is complete, and when a file arrives after it, whatever fails."""

import threading
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest

from lake.commit import read_commit
from lake.hours import CONFIRM_AFTER, GRACE
from lake.ledger import HourState
from lake.manifest import Lane, Partition
from lake.publish import complete_all
from router.requests.reprocess import reprocess
from router.sweep.handler import sweep
from router.sweep.hours import announce_hours
from router.telemetry import Metric
from tests.load.request_counts import counted_requests
from tests.unit.cli.conftest import valid_json
from tests.unit.lake.faults import Crash
from tests.unit.lake.world import PARTITION
from tests.unit.router.conftest import Deployment, recorded
from tests.unit.router.event_bridge import FakeEventBridge
from tests.unit.router.settling import done
from tests.unit.router.sweep.sweeping import HOUR, committed, listed, marker, published, repair, swept, with_events


@pytest.fixture
def bridge(deployment: Deployment) -> FakeEventBridge:
    return with_events(deployment)


def to_be_announced(deployment: Deployment, rejects: int = 0) -> None:
    """The hour of ``PARTITION`` has ten rows and is over; faults count the writes from here on."""
    done(deployment, listed(deployment, "a.json"), 10, rejects)
    deployment.wait(HOUR)
    deployment.faults.reset()


def completed(deployment: Deployment) -> None:
    """The hour of ``PARTITION`` is announced as complete."""
    to_be_announced(deployment, rejects=2)
    assert swept(deployment) == {"completed": 1}


def test_a_complete_hour_is_announced_once(deployment: Deployment, bridge: FakeEventBridge) -> None:
    completed(deployment)
    body = marker(deployment)
    assert body == {
        "format": 1,
        "id": "lake/orders/2026-11-20T09/1",
        "stage": "test",
        "dataset": "orders",
        "hour": "2026-11-20T09",
        "state": "complete",
        "revision": 1,
        "at": "2026-11-20T10:30:00.000+00:00",
        "data": "s3://lake/orders/date=2026-11-20/hour=09/",
        "marker": "s3://lake/orders/date=2026-11-20/hour=09/_complete.json",
        "manifests": 1,
        "files": 1,
        "bytes": 100,
        "rows": 10,
        "quarantinedLines": 2,
        "unreadableFiles": 0,
        "publishedAt": "2026-11-20T09:30:00.000+00:00",
        "table": None,
    }
    valid_json("hour", body)
    assert bridge.announced == [("Complete", 1, 10)]
    assert bridge.sent[0]["Source"] == "hybrid-router"
    # The marker is not a foreign object, and the hour is not checked again.
    assert swept(deployment) == {}
    assert list(deployment.ledger.partitions.unsettled()) == []
    assert len(bridge.sent) == 1


def test_a_late_file_reopens_an_hour_until_it_is_published(deployment: Deployment, bridge: FakeEventBridge) -> None:
    # Given
    completed(deployment)
    # When a file arrives late, and its manifest has no row yet
    late = deployment.manifest("late.json")
    deployment.ledger.partitions.list_manifest(PARTITION, late.id, deployment.now)
    # Then the next sweep announces it, and the sweep after its conversion announces that the hour is complete again
    assert swept(deployment) == {"reopened": 1}
    assert marker(deployment) is None
    deployment.wait(GRACE)
    assert [swept(deployment), swept(deployment)] == [{}, {}]
    row = deployment.enqueued(late)
    assert swept(deployment) == {}
    done(deployment, row, 5)
    assert swept(deployment) == {"completed": 1}
    assert marker(deployment)["files"] == 2  # type: ignore[index]
    assert bridge.announced == [("Complete", 1, 10), ("Reopened", 2, 10), ("Complete", 3, 15)]


def test_an_hour_that_is_converted_again_is_complete_once_the_replaced_objects_are_gone(
    deployment: Deployment, bridge: FakeEventBridge
) -> None:
    # Given a complete hour with a manifest that a person converts again
    row = published(deployment, listed(deployment, "a.json"))
    deployment.wait(HOUR)
    assert swept(deployment) == {"completed": 1}
    request = {"manifests": [row.id], "all": True, "request": "again"}
    assert reprocess(request, deployment.services)["queued"] == 1
    assert swept(deployment) == {"reopened": 1}
    # When the new generation is published, and readers see both
    published(deployment, deployment.row(row.id))
    deployment.wait(GRACE)
    announce_hours(repair(deployment))
    # Then the hour is not complete until the sweep has deleted the old one
    assert [kind for kind, *_ in bridge.announced] == ["Complete", "Reopened"]
    deployment.wait(HOUR)
    assert swept(deployment) == {"deleted": 3, "completed": 1}


def test_an_hour_is_not_complete_while_it_shows_what_a_publish_left_whose_manifest_was_promoted_since(
    deployment: Deployment, bridge: FakeEventBridge
) -> None:
    # Given a publish that failed, whose process died before it deleted the completed objects
    deployment.wait(HOUR)
    row = committed(deployment, deployment.claimed(listed(deployment, "a.json")))
    assert row.document is not None
    objects = read_commit(deployment.raw_s3, "control", row.document).objects
    complete_all(deployment.raw_s3, objects)
    assert deployment.ledger.manifests.fail(row, "an upload is gone", deployment.now)
    # When a person has the manifest converted again, and its file promoted
    assert reprocess({"manifests": [row.id], "request": "again"}, deployment.services)["queued"] == 1
    urgent = deployment.manifest("a.json", lane=Lane.STREAM)
    deployment.superseded(deployment.row(row.id), urgent)
    done(deployment, deployment.row(urgent.id), 10)
    deployment.wait(GRACE)
    announce_hours(repair(deployment))
    # Then
    assert bridge.announced == []
    deployment.wait(HOUR)
    assert swept(deployment) == {"aborted": 1, "deleted": len(objects), "completed": 1}


def test_a_check_of_waiting_hours_is_one_read(deployment: Deployment, bridge: FakeEventBridge) -> None:
    # Given hours with manifests that wait for the night
    for hour in range(9):
        listed(deployment, f"a{hour}", partition=replace(PARTITION, hour=hour))
    deployment.wait(timedelta(days=1))
    announce_hours(repair(deployment))
    # When
    with counted_requests() as requests:
        announce_hours(repair(deployment))
    # Then
    assert (requests["Query"], requests["BatchGetItem"], requests["GetItem"], requests["write units"]) == (1, 1, 0, 0)


def test_a_damaged_manifest_keeps_only_its_own_hour_open(deployment: Deployment, bridge: FakeEventBridge) -> None:
    # Given two hours that wait, and a manifest that was damaged in the meantime
    damaged, intact = (listed(deployment, f"a{hour}", partition=replace(PARTITION, hour=hour)) for hour in (7, 8))
    deployment.wait(timedelta(days=1))
    announce_hours(repair(deployment))
    deployment.damage(damaged)
    published(deployment, intact)
    # When
    later = repair(deployment)
    announce_hours(later)
    # Then
    assert later.counts == {"completed": 1}
    assert {str(error).partition(" (")[0] for error in later.errors} == {
        f"the ledger row of manifest {damaged.id} is damaged"
    }


@pytest.mark.parametrize(
    ("lane", "rejects", "counted"),
    [(Lane.STREAM, 2, {"aboveShare": 1}), (Lane.STREAM, 1, {}), (Lane.BATCH, 2, {})],
    ids=["above", "at the limit", "settle judges it"],
)
def test_an_hour_much_of_which_the_stream_lane_has_quarantined_is_counted(
    deployment: Deployment, bridge: FakeEventBridge, lane: Lane, rejects: int, counted: dict[str, int]
) -> None:
    # Given an hour of 20 lines, and the default limit of 5 %
    assert deployment.services.settings.alarms.max_quarantined_share == 0.05
    done(deployment, listed(deployment, "a.json", lane=lane), 20 - rejects, rejects)
    deployment.wait(HOUR)
    # Then
    found = dict[str, int]()
    above = recorded(lambda: found.update(swept(deployment)), Metric.HOURS_ABOVE_QUARANTINED_SHARE)
    assert (found, above) == ({"completed": 1, **counted}, [counted.get("aboveShare", 0)])
    # When the hour is not checked again
    assert swept(deployment) == {}
    assert len(bridge.sent) == 1


def test_many_hours_are_announced_concurrently_with_nine_requests_each(deployment: Deployment) -> None:
    # Given 40 datasets with an ended hour each, and events that are accepted only if four are sent at once
    partitions = [Partition(f"dataset_{number:03}", "2026-11-20", 9) for number in range(40)]
    for partition in partitions:
        done(deployment, listed(deployment, "a.json", partition=partition), 10, 0)
    deployment.wait(HOUR)
    bridge, together = with_events(deployment), threading.Barrier(4, timeout=60)

    def put_events(**request: Any) -> Any:
        together.wait()
        return bridge.put_events(**request)

    deployment.services = replace(deployment.services, events=SimpleNamespace(put_events=put_events))
    # When
    found = repair(deployment)
    with counted_requests() as counts:
        announce_hours(found)
    # Then ten thousand datasets take 90,000 requests, 32 at a time: 141 s at 50 ms each
    assert not found.errors
    assert found.counts == {"completed": 40}
    assert all(marker(deployment, partition) for partition in partitions[::10])
    # Each caller that finds no collection of the hour puts an empty one, and all but one of them read it again.
    assert sum(counts.values()) - counts["write units"] - 2 * counts["PutItem"] <= 9 * 40 + 10


def announce_and_reopen(deployment: Deployment) -> None:
    """Let other sweeps announce the hour, and then a late file."""
    announce_hours(repair(deployment))
    listed(deployment, "late.json")
    announce_hours(repair(deployment))


def test_an_event_that_is_not_taken_is_sent_by_the_next_sweep(deployment: Deployment, bridge: FakeEventBridge) -> None:
    # Given
    to_be_announced(deployment)
    bridge.refuses = True
    # When
    with pytest.raises(Exception, match=r"did not accept the event of orders#2026-11-20T09 .it is busy"):
        sweep(deployment.services)
    # Then: the marker is there, and the same event follows, even if the hour was touched meanwhile
    assert marker(deployment) is not None
    bridge.refuses = False
    late = listed(deployment, "late.json")
    assert swept(deployment) == {"completed": 1}
    assert swept(deployment) == {"reopened": 1}
    done(deployment, late, 1)
    assert bridge.announced == [("Complete", 1, 10), ("Reopened", 2, 10)]


@pytest.mark.parametrize("fault", ["crash_before", "lose_answer_of", "drop", "delay", "repeat"])
@pytest.mark.parametrize("number", [1, 2, 3, 4])
def test_a_fault_of_one_sweep_is_repaired_by_the_next(
    deployment: Deployment, bridge: FakeEventBridge, fault: str, number: int
) -> None:
    # Given an hour to be announced by four writes: row, marker, event, row
    to_be_announced(deployment)
    # When one of them fails
    setattr(deployment.faults, fault, number)
    with suppress(Crash):
        announce_hours(repair(deployment))
    deployment.faults.reset()
    announce_hours(repair(deployment))
    deployment.faults.deliver()
    announce_hours(repair(deployment))
    # Then: at least one event is sent, all events have the same id, and the marker is there
    assert set(bridge.announced) == {("Complete", 1, 10)}
    assert marker(deployment) is not None
    assert deployment.ledger.partitions.get(PARTITION).is_settled
    assert list(deployment.ledger.partitions.unsettled()) == []


@pytest.mark.parametrize("number", [2, 3, 4])
def test_a_sweep_that_resumes_late_leaves_the_marker_of_the_current_row(
    deployment: Deployment, bridge: FakeEventBridge, number: int
) -> None:
    # Given an hour to be announced
    to_be_announced(deployment)
    # When a sweep stalls before a write, while others announce the hour and then a late file
    deployment.faults.pause = (number, partial(announce_and_reopen, deployment))
    announce_hours(repair(deployment))
    # Then
    assert marker(deployment) is None
    assert deployment.ledger.partitions.get(PARTITION).decided == HourState.REOPENED
    assert [event for event in bridge.announced if event[0] == "Reopened"] == [("Reopened", 2, 10)]


def test_a_sweep_that_resumes_late_and_dies_leaves_no_marker_for_long(
    deployment: Deployment, bridge: FakeEventBridge
) -> None:
    # Given a sweep that stalls before it puts the marker, while others announce the hour and a late file
    to_be_announced(deployment)

    def meanwhile() -> None:
        announce_and_reopen(deployment)
        # It writes the marker and the event, and then nothing more.
        deployment.faults.crash_before = len(deployment.faults.writes) + 3

    # Before the marker is put, no part is added without a touch, and the row is complete.
    deployment.faults.pause = (3, meanwhile)
    with suppress(Crash):
        announce_hours(repair(deployment))
    assert marker(deployment) is not None
    # When every sweep that began before the hour was reopened has ended
    deployment.faults.reset()
    deployment.wait(CONFIRM_AFTER)
    announce_hours(repair(deployment))
    # Then
    assert marker(deployment) is None
    assert [row.partition for row in deployment.ledger.partitions.unsettled()] == [PARTITION]
    # And another check of the hour changes nothing
    deployment.faults.reset()
    announce_hours(repair(deployment))
    assert deployment.faults.writes == []


def test_a_sweep_that_resumes_late_and_dies_does_not_take_the_marker_of_a_complete_hour(
    deployment: Deployment, bridge: FakeEventBridge
) -> None:
    # Given a sweep that stalls before it deletes the marker of a reopened hour, until the hour is complete again
    to_be_announced(deployment)
    announce_hours(repair(deployment))
    late = listed(deployment, "late.json")
    deployment.faults.reset()

    def meanwhile() -> None:
        announce_hours(repair(deployment))
        done(deployment, late, 1)
        deployment.wait(GRACE)
        announce_hours(repair(deployment))
        deployment.faults.crash_before = len(deployment.faults.writes) + 3

    deployment.faults.pause = (2, meanwhile)
    with suppress(Crash):
        announce_hours(repair(deployment))
    deployment.faults.reset()
    assert deployment.ledger.partitions.get(PARTITION).revision == 3
    assert marker(deployment) is None
    # When
    deployment.wait(CONFIRM_AFTER)
    announce_hours(repair(deployment))
    # Then
    assert marker(deployment) is not None
    assert list(deployment.ledger.partitions.unsettled()) == []


@pytest.mark.parametrize(("number", "expected"), [(1, []), (4, [("Complete", 1, 10), ("Reopened", 2, 10)])])
def test_a_file_that_arrives_during_a_check_is_not_missed(
    deployment: Deployment, bridge: FakeEventBridge, number: int, expected: list[tuple[str, int, int]]
) -> None:
    # Given a file that arrives before the hour is announced, or before it leaves the index
    to_be_announced(deployment)
    deployment.faults.pause = (number, lambda: listed(deployment, "late.json"))
    # When
    announce_hours(repair(deployment))
    announce_hours(repair(deployment))
    # Then
    assert bridge.announced == expected
    assert marker(deployment) is None
    assert [row.partition for row in deployment.ledger.partitions.unsettled()] == [PARTITION]
