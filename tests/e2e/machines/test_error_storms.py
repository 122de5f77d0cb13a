"""An error that is not retried, or too often: the execution ends and a person is told, or the machine goes on.

That every state retries and catches the right errors is read from the machines' files: `tests/unit/infra`.
"""

import json
from typing import Any

import pytest

from tests.e2e.machines.conftest import MACHINES, StubbedMachines

(RETRIER,) = json.loads((MACHINES / "lambda_retry.json").read_text(encoding="utf-8"))
RETRIES: int = RETRIER["MaxAttempts"]
STORM: list[str] = RETRIER["ErrorEquals"][: RETRIES + 1]
"""Errors that pass, one more than a state retries."""
LASTING = "TerminalError"

RANGE = {"dataset": "orders", "from": "2026-11-01T00", "to": "2026-11-02T23"}
DRY_RUN = {**RANGE, "dryRun": True, "force": True}
FOUND = {
    "found": 5,
    "known": 2,
    "recorded": 3,
    "unsettled": 0,
    "bytes": 30,
    "archived": 0,
    "token": None,
    "waitSeconds": 0,
}
REQUEUED = {"queued": 2, "repeated": 0, "token": None}
NOTHING_OPEN = {"open": 0, "terminal": 1, "held": 0}
ONE_OPEN = {"open": 1, "terminal": 0, "held": 0}
WATCHING, CLOSING = ({"running": True, "windowOver": over, "stopped": False} for over in (False, True))
STOPPED = {"running": False, "windowOver": True, "stopped": True}

ENDING: dict[str, tuple[str, str, list[dict[str, Any]]]] = {
    "Plan": ("overnight", "stub-plan", []),
    "Settle": ("overnight", "stub-settle", []),
    "Validate": ("backfill", "stub-backfill", []),
    "Find": ("backfill", "stub-backfill", [DRY_RUN]),
    "Reprocess": ("backfill", "stub-reprocess", []),
    "Plan of a dry run": ("backfill", "stub-plan", []),
    "Start": ("stream_window", "stub-stream-control", []),
    "Stop": ("stream_window", "stub-stream-control", [CLOSING]),
    "Kill": ("stream_window", "stub-stream-control", [CLOSING] * 4),
}
"""State whose failure ends its execution -> machine, function, and the function's answers before this state."""


@pytest.fixture
def machines(stubbed: StubbedMachines) -> StubbedMachines:
    """All functions succeed; a backfill is a dry run with force, so that it passes through all of its Lambda states."""
    stubbed.set_answers("stub-backfill", DRY_RUN, FOUND)
    stubbed.set_answers("stub-reprocess", REQUEUED)
    stubbed.set_answers("stub-stream-control", WATCHING, CLOSING, STOPPED)
    return stubbed


NEXT_STEP = {
    "overnight": "hybrid-router overnight --stage test",
    "stream_window": "hybrid-router stream start --stage test",
    "backfill": "start the backfill again with the same input",
}


def raising(names: list[str]) -> list[dict[str, str]]:
    return [{"raise": name, "message": f"{name} of a test"} for name in names]


@pytest.mark.parametrize("state", ENDING)
def test_an_error_that_does_not_pass_ends_the_execution_and_is_told(machines: StubbedMachines, state: str) -> None:
    # Given a function that dies too often in the first state, and fails for good in the others
    names = STORM if state == "Plan" else [LASTING]
    machine, function, before = ENDING[state]
    machines.set_answers(function, *before, *raising(names))
    # When
    end = machines.run(machine, DRY_RUN if machine == "backfill" else {})
    # Then: it was tried as often as it is retried
    assert len(machines.calls(function)) == len(before) + len(names)
    assert (end["status"], end["error"], end["cause"]) == ("FAILED", names[-1], f"{names[-1]} of a test")
    (notification,) = machines.take_notifications()
    assert f"The execution {end['name']} ended with {names[-1]}: {names[-1]} of a test" in notification
    assert NEXT_STEP[machine] in notification


def test_a_run_that_cannot_be_counted_gets_another_round_and_a_catalog_that_fails_changes_nothing(
    machines: StubbedMachines,
) -> None:
    # Given
    machines.set_answers("stub-run-status", *raising([LASTING]), NOTHING_OPEN)
    machines.set_answers("stub-catalog", *raising([LASTING]))
    # When, Then
    assert machines.run("overnight", {})["status"] == "SUCCEEDED"
    assert len(machines.calls("job")) == 2
    assert len(machines.calls("stub-catalog")) == 1


def test_a_watch_that_fails_is_told_once_and_the_window_goes_on(machines: StubbedMachines) -> None:
    # Given: two checks in succession that fail
    answers = [WATCHING, *raising([LASTING, LASTING]), WATCHING, CLOSING, STOPPED]
    machines.set_answers("stub-stream-control", *answers)
    # When, Then
    assert machines.run("stream_window", {})["status"] == "SUCCEEDED"
    assert len(machines.calls("stub-stream-control")) == len(answers)
    (notification,) = machines.take_notifications()
    assert f"could not watch the stream: {LASTING}: {LASTING} of a test" in notification
