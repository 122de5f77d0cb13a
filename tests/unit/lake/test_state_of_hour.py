"""The state of an hour: a table of cases; and its counts."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from infra.alarms import LATE_ARRIVAL_SECONDS
from infra.functions import MAX_TIMEOUT_SECONDS
from lake.hours import GRACE, HourContents, stamps_between, state_of_hour
from lake.ledger import HourCounts, HourRow, HourState, State
from lake.manifest import Partition
from lake.time import iso_utc
from tests.unit.lake.world import PARTITION
from tests.unit.report.reporting import row

END = datetime(2026, 11, 20, 10, tzinfo=UTC)
"""End of the hour of ``PARTITION``."""
LATER = END + timedelta(days=9)
NEW = HourRow(PARTITION, touched=1, touched_at=iso_utc(END - timedelta(minutes=5)))
TOLD = replace(NEW, decided=HourState.COMPLETE, settled=1, revision=1)
TOUCHED = replace(TOLD, touched=2, touched_at=iso_utc(LATER))
REOPENED = replace(TOUCHED, decided=HourState.REOPENED, revision=2)


def contents_of(*states: State | None) -> HourContents:
    contents = HourContents()
    for number, state in enumerate(states):
        contents.add(f"m{number}", None if state is None else row(f"m{number}", state=state))
    return contents


@pytest.mark.parametrize(
    ("hour", "states", "now", "expected"),
    [
        # Nothing was recorded for it.
        (HourRow(PARTITION), (), END + GRACE, HourState.COMPLETE),
        (HourRow(PARTITION), (), END + GRACE - timedelta(seconds=1), HourState.OPEN),
        (HourRow(Partition("orders", "9999-12-31", 23)), (), LATER, HourState.OPEN),
        # It ended long enough ago, or too recently.
        (NEW, (State.DONE,), END + GRACE, HourState.COMPLETE),
        (NEW, (State.DONE,), END + GRACE - timedelta(seconds=1), HourState.OPEN),
        # A manifest or file of it waits.
        (NEW, (State.DONE, State.QUEUED), LATER, HourState.OPEN),
        (NEW, (State.PUBLISHING, State.FAILED), LATER, HourState.OPEN),
        (NEW, (State.DONE, State.FAILED), LATER, HourState.OPEN),
        (NEW, (State.DONE, None), LATER, HourState.OPEN),
        (NEW, (State.DONE, State.SUPERSEDED, State.ABANDONED), LATER, HourState.COMPLETE),
        # A file arrived a moment ago.
        (replace(NEW, touched_at=iso_utc(LATER)), (State.DONE,), LATER + timedelta(minutes=14), HourState.OPEN),
        (replace(NEW, touched_at=iso_utc(LATER)), (State.DONE,), LATER + GRACE, HourState.COMPLETE),
        # It was complete: its manifests are not read.
        (TOLD, (), LATER, HourState.COMPLETE),
        # It was touched afterwards, whether readers know it or not.
        (TOUCHED, (State.DONE, State.QUEUED), LATER, HourState.REOPENED),
        (REOPENED, (State.DONE, State.QUEUED), LATER, HourState.REOPENED),
        (REOPENED, (State.DONE, State.FAILED), LATER + GRACE, HourState.REOPENED),
        (REOPENED, (State.DONE, State.DONE), LATER + GRACE, HourState.COMPLETE),
    ],
)
def test_the_state_of_an_hour(
    hour: HourRow, states: tuple[State | None, ...], now: datetime, expected: HourState
) -> None:
    assert state_of_hour(hour, contents_of(*states), now, shows_replaced=False) is expected


def test_an_hour_that_shows_replaced_objects_is_not_complete() -> None:
    assert state_of_hour(NEW, contents_of(State.DONE), LATER, shows_replaced=True) is HourState.OPEN
    assert state_of_hour(TOLD, HourContents(), LATER, shows_replaced=True) is HourState.COMPLETE


def test_the_grace_is_as_long_as_an_event_may_wait_and_as_a_function_lives() -> None:
    assert timedelta(seconds=LATE_ARRIVAL_SECONDS) == GRACE
    assert timedelta(seconds=MAX_TIMEOUT_SECONDS) <= GRACE


def test_what_counts() -> None:
    # Given
    contents = HourContents()
    again = replace(row("again"), generation=2)
    # When
    for item in (row("done"), again, row("failed", state=State.FAILED), row("open", state=State.QUEUED)):
        contents.add(item.id, item)
    rows = contents.rows
    for state in (State.QUEUED, State.FAILED):
        contents.add(f"shown-{state}", replace(again, state=state))
    contents.add("gone", row("gone", state=State.SUPERSEDED))
    contents.add("new", None)
    # Then
    assert (contents.done, contents.failed, contents.open) == (2, 2, 3)
    assert contents.waits_for == "failed"
    assert contents.was_reprocessed
    assert contents.files == 6 * row("done").files
    # And the counts of an earlier generation are used until the next one is DONE
    assert (rows, contents.rows) == (200, 400)
    assert contents_of(State.DONE).counts().manifests == 1
    assert contents_of().counts() == HourCounts()


def test_hours_follow_one_another_over_midnight() -> None:
    assert stamps_between("9999-12-31T22", "9999-12-31T23") == ["9999-12-31T22", "9999-12-31T23"]
    assert stamps_between("0999-12-31T23", "1000-01-01T00") == ["0999-12-31T23", "1000-01-01T00"]
    assert stamps_between("2026-11-20T23", "2026-11-21T01") == ["2026-11-20T23", "2026-11-21T00", "2026-11-21T01"]
