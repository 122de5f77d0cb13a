"""Ownership: whichever write crashes, is repeated or loses its answer, every file ends in exactly one manifest."""

from collections.abc import Callable
from datetime import timedelta

import pytest

from router.route.handler import route
from tests.unit.lake.faults import Crash, Faults
from tests.unit.router.conftest import new_deployment
from tests.unit.router.events import failures
from tests.unit.router.owning import (
    EVERY_WRITE,
    KEYS,
    WRITES,
    assert_nothing_acknowledged_too_early,
    assert_owned_once,
    delay,
    drop,
    event,
    lose_answer,
    outside_peak,
    redeliver,
)


def test_the_number_of_writes_without_faults() -> None:
    with new_deployment() as deployment:
        assert failures(route(event(), outside_peak(deployment).services)) == []
        assert len(deployment.faults.writes) == WRITES
        assert_owned_once(deployment)


@pytest.mark.repeats_lines
@pytest.mark.parametrize("number", EVERY_WRITE)
def test_a_crash_before_any_write_loses_and_duplicates_nothing(number: int) -> None:
    with new_deployment() as deployment:
        # Given: the process crashes
        deployment.faults.crash_before = number
        with pytest.raises(Crash):
            route(event(), outside_peak(deployment).services)
        # When: SQS delivers everything again
        deployment.faults.reset()
        redeliver(deployment, list(KEYS))
        # Then
        assert_owned_once(deployment)
        assert "jr_1" in deployment.glue.runs["stream-job"]


@pytest.mark.repeats_lines
@pytest.mark.parametrize("fault", [lose_answer, drop, delay])
@pytest.mark.parametrize("number", EVERY_WRITE)
def test_a_write_without_an_answer_loses_and_duplicates_nothing(
    fault: Callable[[Faults, int], None], number: int
) -> None:
    with new_deployment() as deployment:
        # Given: one write is applied or not, now or later, and its answer is lost
        fault(deployment.faults, number)
        unacknowledged = failures(route(event(), outside_peak(deployment).services))
        deployment.faults.deliver()
        deployment.faults.reset()
        assert_nothing_acknowledged_too_early(deployment, unacknowledged)
        # When
        redeliver(deployment, unacknowledged)
        # Then
        assert_owned_once(deployment)


@pytest.mark.repeats_lines
@pytest.mark.parametrize("number", EVERY_WRITE)
def test_a_write_that_arrives_after_the_redelivery_changes_nothing(number: int) -> None:
    with new_deployment() as deployment:
        deployment.faults.delay = number
        unacknowledged = failures(route(event(), outside_peak(deployment).services))
        deployment.faults.delay = None
        redeliver(deployment, unacknowledged)
        deployment.faults.deliver()
        assert_owned_once(deployment)


@pytest.mark.repeats_lines
@pytest.mark.parametrize("minutes", [0, 6], ids=["at once", "presumed dead"])
@pytest.mark.parametrize("number", EVERY_WRITE)
def test_two_invocations_of_the_same_events_agree(number: int, minutes: int) -> None:
    with new_deployment() as deployment:
        outside_peak(deployment)
        second: list[str] = []

        def meanwhile() -> None:
            deployment.wait(timedelta(minutes=minutes))
            second.extend(failures(route(event(), deployment.services)))

        # Given: an invocation that stalls before a write while another one has the same events
        deployment.faults.pause = (number, meanwhile)
        first = failures(route(event(), deployment.services))
        # Then: what either has acknowledged is owned, and the rest is redelivered
        assert_nothing_acknowledged_too_early(deployment, [key for key in first if key in second])
        redeliver(deployment, [key for key in first if key in second])
        assert_owned_once(deployment)
