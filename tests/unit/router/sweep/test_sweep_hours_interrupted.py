"""Readers of an hour are told, whatever goes wrong or comes between the writes of a sweep."""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

import pytest

from lake.hours import CONFIRM_AFTER, GRACE
from lake.ledger import HourState
from lake.ledger.hours import Partitions
from router.sweep.handler import sweep
from router.sweep.hours import announce_hours
from tests.unit.lake.faults import Crash
from tests.unit.lake.world import PARTITION
from tests.unit.router.hour_world import HOUR, listed, marker, repair, swept, with_events
from tests.unit.router.settling import done

if TYPE_CHECKING:
    from tests.unit.router.conftest import Deployment
    from tests.unit.router.event_bridge import FakeEventBridge


@pytest.fixture
def bridge(deployment: Deployment) -> FakeEventBridge:
    return with_events(deployment)


def announce_and_reopen(deployment: Deployment) -> None:
    """Other sweeps announce the hour, and that a file came late."""
    announce_hours(repair(deployment))
    listed(deployment, "late.json")
    announce_hours(repair(deployment))


def test_an_event_that_is_not_taken_is_sent_by_the_next_sweep(deployment: Deployment, bridge: FakeEventBridge) -> None:
    # Given
    done(deployment, listed(deployment, "a.json"), 10)
    deployment.wait(HOUR)
    bridge.refuses = True
    # When
    with pytest.raises(Exception, match=r"did not take the event of orders#2026-11-20T09 .it is busy"):
        sweep(deployment.services)
    # Then: the marker is there, and the same event follows, even if the hour was touched meanwhile
    assert marker(deployment) is not None
    bridge.refuses = False
    late = listed(deployment, "late.json")
    assert swept(deployment) == {"completed": 1}
    assert swept(deployment) == {"reopened": 1}
    done(deployment, late, 1)
    assert bridge.told == [("Complete", 1, 10), ("Reopened", 2, 10)]


@pytest.mark.parametrize("fault", ["crash_before", "lose_answer_of", "drop", "delay", "repeat"])
@pytest.mark.parametrize("number", [1, 2, 3, 4])
def test_what_goes_wrong_in_one_sweep_is_mended_by_the_next(
    deployment: Deployment, bridge: FakeEventBridge, fault: str, number: int
) -> None:
    # Given an hour to be told, by four writes: row, marker, event, row
    done(deployment, listed(deployment, "a.json"), 10)
    deployment.wait(HOUR)
    deployment.faults.reset()
    # When one of them goes wrong
    setattr(deployment.faults, fault, number)
    with suppress(Crash):
        announce_hours(repair(deployment))
    deployment.faults.reset()
    announce_hours(repair(deployment))
    deployment.faults.deliver()
    announce_hours(repair(deployment))
    # Then: at least one event, all of the same id, and the marker
    assert set(bridge.told) == {("Complete", 1, 10)}
    assert marker(deployment) is not None
    assert deployment.ledger.partitions.get(PARTITION).is_settled
    assert list(deployment.ledger.partitions.unsettled()) == []


@pytest.mark.parametrize("number", [2, 3, 4])
def test_a_sweep_that_resumes_late_leaves_the_marker_of_the_current_row(
    deployment: Deployment, bridge: FakeEventBridge, number: int
) -> None:
    # Given an hour to be told
    done(deployment, listed(deployment, "a.json"), 10)
    deployment.wait(HOUR)
    deployment.faults.reset()
    # When a sweep stalls before a write, while others tell it, and that a file came late
    deployment.faults.pause = (number, partial(announce_and_reopen, deployment))
    announce_hours(repair(deployment))
    # Then
    assert marker(deployment) is None
    assert deployment.ledger.partitions.get(PARTITION).told == HourState.REOPENED
    assert [told for told in bridge.told if told[0] == "Reopened"] == [("Reopened", 2, 10)]


def test_a_sweep_that_resumes_late_and_dies_leaves_no_marker_for_long(
    deployment: Deployment, bridge: FakeEventBridge
) -> None:
    # Given a sweep that stalls before it puts the marker, while others announce the hour and that a file came late
    done(deployment, listed(deployment, "a.json"), 10)
    deployment.wait(HOUR)
    deployment.faults.reset()

    def meanwhile() -> None:
        announce_and_reopen(deployment)
        # The marker, the event, and then nothing more.
        deployment.faults.crash_before = len(deployment.faults.writes) + 3

    # Before the marker: no part is added from then on without a touch, and the row is complete.
    deployment.faults.pause = (3, meanwhile)
    with suppress(Crash):
        announce_hours(repair(deployment))
    assert marker(deployment) is not None
    # When no sweep is left that began before the hour was reopened
    deployment.faults.reset()
    deployment.wait(CONFIRM_AFTER)
    announce_hours(repair(deployment))
    # Then
    assert marker(deployment) is None
    assert [row.partition for row in deployment.ledger.partitions.unsettled()] == [PARTITION]
    # And it is looked at once
    deployment.faults.reset()
    announce_hours(repair(deployment))
    assert deployment.faults.writes == []


def test_a_sweep_that_resumes_late_and_dies_does_not_take_the_marker_of_a_complete_hour(
    deployment: Deployment, bridge: FakeEventBridge
) -> None:
    # Given a sweep that stalls before it deletes the marker of a reopened hour, until the hour is complete again
    done(deployment, listed(deployment, "a.json"), 10)
    deployment.wait(HOUR)
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


@pytest.mark.parametrize(("number", "told"), [(1, []), (4, [("Complete", 1, 10), ("Reopened", 2, 10)])])
def test_a_file_that_comes_during_a_look_is_not_overlooked(
    deployment: Deployment, bridge: FakeEventBridge, number: int, told: list[tuple[str, int, int]]
) -> None:
    # Given a file that comes before the hour is told, or before it leaves the index
    done(deployment, listed(deployment, "a.json"), 10)
    deployment.wait(HOUR)
    deployment.faults.reset()
    deployment.faults.pause = (number, lambda: listed(deployment, "late.json"))
    # When
    announce_hours(repair(deployment))
    announce_hours(repair(deployment))
    # Then
    assert bridge.told == told
    assert marker(deployment) is None
    assert [row.partition for row in deployment.ledger.partitions.unsettled()] == [PARTITION]


def test_the_row_decides_and_not_the_index(
    deployment: Deployment, bridge: FakeEventBridge, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Given an index that lags: another manifest was recorded since
    done(deployment, listed(deployment, "a.json"), 10)
    deployment.wait(HOUR)
    before = list(deployment.ledger.partitions.unsettled())
    monkeypatch.setattr(Partitions, "unsettled", lambda _: iter(before))
    listed(deployment, "b.json")
    # When, Then
    assert swept(deployment) == {}
    assert bridge.sent == []
