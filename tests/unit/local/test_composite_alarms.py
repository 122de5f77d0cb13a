"""Actions of a composite alarm in the emulator: suppressed by another alarm, with both periods that AWS documents."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest
from ministack.services import cloudwatch  # type: ignore[import-untyped]

from local.emulator_patches.composite_alarms import Change, Suppression

if TYPE_CHECKING:
    from collections.abc import Callable

CAUSE, LATE = "cause", "late"
WAIT, EXTENSION = 120, 900
TOPIC = "arn:aws:sns:eu-central-1:111122223333:alarms"


@dataclass
class World:
    """An alarm that suppresses a composite one, a clock that is moved by hand, and the messages that were sent."""

    alarms: dict[str, dict[str, Any]]
    now: float = 0
    work: list[tuple[float, Callable[[], object]]] = field(default_factory=list)
    sent: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        options = {
            LATE: {
                "ActionsSuppressor": CAUSE,
                "ActionsSuppressorWaitPeriod": WAIT,
                "ActionsSuppressorExtensionPeriod": EXTENSION,
            }
        }
        self.suppression = Suppression(options, lambda: self.now, self.later)

    def later(self, seconds: float, work: Callable[[], object]) -> None:
        self.work.append((self.now + seconds, work))

    def dispatch(self, alarm: dict[str, Any], old: str, new: str, reason: str) -> None:
        """What the emulator calls for each new state of an alarm."""
        if not self.suppression.holds(alarm["AlarmName"], Change(old, new, reason)):
            self.sent += alarm["AlarmActions"] if new == "ALARM" else []

    def becomes(self, name: str, state: str) -> None:
        alarm, old = self.alarms[name], self.alarms[name]["StateValue"]
        alarm["StateValue"] = state
        if name == LATE:
            self.dispatch(alarm, old, state, "test")
        self.suppression.alarm_changed(alarm)

    def passes(self, seconds: float) -> None:
        end = self.now + seconds
        while due := sorted((entry for entry in self.work if entry[0] <= end), key=lambda entry: entry[0])[:1]:
            self.work.remove(due[0])
            self.now = due[0][0]
            due[0][1]()
        self.now = end


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    alarms: dict[str, dict[str, Any]] = {
        name: {"AlarmName": name, "AlarmArn": name, "StateValue": "OK"} for name in (CAUSE, LATE)
    }
    alarms[LATE]["AlarmActions"] = [TOPIC]
    monkeypatch.setattr(cloudwatch, "_alarms", {CAUSE: alarms[CAUSE]})
    monkeypatch.setattr(cloudwatch, "_composite_alarms", {LATE: alarms[LATE]})
    made = World(alarms)
    monkeypatch.setattr(cloudwatch, "_dispatch_alarm_actions", made.dispatch)
    return made


def test_without_its_cause_it_acts_after_the_wait_period(world: World) -> None:
    # Given
    world.becomes(LATE, "ALARM")
    world.passes(WAIT - 1)
    assert (world.sent, world.alarms[LATE]["ActionsSuppressedBy"]) == ([], "WaitPeriod")
    # When
    world.passes(1)
    # Then
    assert world.sent == [TOPIC]
    assert "ActionsSuppressedBy" not in world.alarms[LATE]


@pytest.mark.parametrize("first", [CAUSE, LATE])
def test_it_is_silent_while_its_cause_is_raised(world: World, first: str) -> None:
    # Given both alarms, in either order
    for name in (first, LATE if first == CAUSE else CAUSE):
        world.becomes(name, "ALARM")
        world.passes(WAIT - 1)
    # When
    world.passes(100 * WAIT)
    # Then
    assert (world.sent, world.alarms[LATE]["ActionsSuppressedBy"]) == ([], "Alarm")


def test_it_acts_when_it_outlasts_its_cause(world: World) -> None:
    # Given
    world.becomes(CAUSE, "ALARM")
    world.becomes(LATE, "ALARM")
    # When the cause has ended
    world.becomes(CAUSE, "OK")
    world.passes(EXTENSION - 1)
    assert (world.sent, world.alarms[LATE]["ActionsSuppressedBy"]) == ([], "ExtensionPeriod")
    world.passes(1)
    # Then
    assert world.sent == [TOPIC]


def test_what_ends_soon_after_its_cause_is_never_told(world: World) -> None:
    # Given
    world.becomes(CAUSE, "ALARM")
    world.becomes(LATE, "ALARM")
    world.becomes(CAUSE, "OK")
    world.passes(EXTENSION - 1)
    # When
    world.becomes(LATE, "OK")
    world.passes(EXTENSION)
    # Then
    assert world.sent == []


def test_a_cause_without_data_silences_nothing(world: World) -> None:
    world.becomes(CAUSE, "INSUFFICIENT_DATA")
    world.becomes(LATE, "ALARM")
    world.passes(WAIT)
    assert world.sent == [TOPIC]


def test_a_cause_that_comes_back_silences_again(world: World) -> None:
    # Given
    world.becomes(CAUSE, "ALARM")
    world.becomes(LATE, "ALARM")
    world.becomes(CAUSE, "OK")
    world.passes(EXTENSION - 1)
    # When
    world.becomes(CAUSE, "ALARM")
    world.passes(EXTENSION)
    # Then
    assert world.sent == []


def test_each_time_that_it_is_raised_is_told(world: World) -> None:
    for _ in range(2):
        world.becomes(LATE, "ALARM")
        world.passes(WAIT)
        world.becomes(LATE, "OK")
        world.passes(WAIT)
    assert world.sent == [TOPIC, TOPIC]
