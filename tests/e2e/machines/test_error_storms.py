"""Every error that can leave a function, in every state that invokes one: once, and more often than it is retried."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from tests.e2e.machines.conftest import (
    JOB_RETRIES,
    MACHINES,
    OVERNIGHT_WITHOUT_GLUE,
    OVERNIGHT_WITHOUT_PLAN,
)

if TYPE_CHECKING:
    from tests.e2e.machines.conftest import StubbedMachines

(RETRIER,) = json.loads((MACHINES / "lambda_retry.json").read_text(encoding="utf-8"))
PASSING: list[str] = RETRIER["ErrorEquals"]
RETRIES: int = RETRIER["MaxAttempts"]
LONG = pytest.mark.long
"""``make storms`` plays them; ``make test-all`` plays one of each kind."""
GROUPS = [PASSING[first : first + RETRIES] for first in range(0, len(PASSING), RETRIES)]
ONCE = [pytest.param(group, id=group[0], marks=[LONG] if number else []) for number, group in enumerate(GROUPS)]
"""One execution carries as many errors in a state as the state is retried."""
STORMS = [(PASSING * 2)[first : first + RETRIES + 1] for first in range(0, len(PASSING), RETRIES + 1)]
"""All states have the same retrier, so the states share the storms."""
LASTING = ("TerminalError", "InvalidSettingsError", "InvalidDocumentError", "UploadsVanishedError", "Runtime.ExitError")
KILLED = ("Runtime.ExitError", "Sandbox.Timedout", "States.Timeout", "Lambda.Unknown")
"""Out of memory; out of Lambda's time; out of the state's time; an answer that Lambda could not give."""

RANGE = {"dataset": "orders", "from": "2026-11-01T00", "to": "2026-11-02T23"}
DRY_RUN = {**RANGE, "dryRun": True, "force": True}
FOUND = {"found": 5, "known": 2, "recorded": 3, "unsettled": 0, "bytes": 30, "token": None, "waitSeconds": 0}
REQUEUED = {"queued": 2, "token": None}
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
    stubbed.set_answers("stub-start-job-run", {})
    return stubbed


def raising(names: list[str]) -> list[dict[str, str]]:
    return [{"raise": name, "message": f"{name} of a test"} for name in names]


@pytest.mark.parametrize("names", ONCE)
def test_an_error_that_passes_in_every_state_of_overnight_changes_nothing(
    machines: StubbedMachines, names: list[str]
) -> None:
    # Given
    functions = {"stub-plan": machines.index("s3://control/runs/0"), "stub-run-status": NOTHING_OPEN}
    functions |= {"stub-settle": settled("SUCCEEDED"), "stub-catalog": {"tables": 1}}
    for function, answer in functions.items():
        machines.set_answers(function, *raising(names), answer)
    # When, Then
    assert machines.run("overnight", {})["status"] == "SUCCEEDED"
    assert {len(machines.calls(function)) for function in functions} == {len(names) + 1}
    assert len(machines.calls("job")) == 1
    assert machines.take_notifications() == []


@pytest.mark.parametrize("names", ONCE)
def test_an_error_that_passes_in_every_state_of_backfill_changes_nothing(
    machines: StubbedMachines, names: list[str]
) -> None:
    # Given
    machines.set_answers("stub-backfill", *raising(names), DRY_RUN, *raising(names), FOUND)
    machines.set_answers("stub-reprocess", *raising(names), REQUEUED)
    machines.set_answers("stub-plan", *raising(names), {"runs": 4})
    # When, Then
    end = machines.run("backfill", DRY_RUN)
    assert end["status"] == "SUCCEEDED", end
    assert json.loads(end["output"])["plan"] == {"runs": 4}
    assert machines.take_notifications() == []


@pytest.mark.parametrize("names", ONCE)
def test_an_error_that_passes_in_every_state_of_the_window_changes_nothing(
    machines: StubbedMachines, names: list[str]
) -> None:
    # Given: a run that does not stop, so that it is killed
    steps = ((WATCHING,), (CLOSING,), (CLOSING, CLOSING, CLOSING), (STOPPED,))
    answers = [answer for step in steps for answer in (*raising(names), *step)]
    machines.set_answers("stub-stream-control", *answers)
    # When, Then
    assert machines.run("stream_window", {})["status"] == "SUCCEEDED"
    actions = [call["action"] for call in machines.calls("stub-stream-control")]
    assert list(dict.fromkeys(actions)) == ["start", "watch", "stop", "kill"]
    assert len(actions) == len(answers)
    assert machines.take_notifications() == []


@pytest.mark.parametrize(
    ("state", "names"),
    [
        pytest.param(state, names, id=f"{state}-{names[0]}", marks=[LONG] if number and len(names) > 1 else [])
        for number, state in enumerate(ENDING)
        for names in (STORMS[number % len(STORMS)], [LASTING[number % len(LASTING)]])
    ],
)
def test_an_error_that_does_not_pass_ends_the_execution_and_is_told(
    machines: StubbedMachines, state: str, names: list[str]
) -> None:
    # Given
    machine, function, before = ENDING[state]
    machines.set_answers(function, *before, *raising(names))
    # When
    end = machines.run(machine, DRY_RUN if machine == "backfill" else {})
    # Then: it was tried as often as it is retried
    assert len(machines.calls(function)) == len(before) + len(names)
    assert (end["status"], end["error"], end["cause"]) == ("FAILED", names[-1], f"{names[-1]} of a test")
    (notification,) = machines.take_notifications()
    assert f"The execution {end['name']} ended with {names[-1]}: {names[-1]} of a test" in notification


@pytest.mark.parametrize("state", ["Settle", *(pytest.param(name, marks=LONG) for name in ("Plan", "Find", "Start"))])
@pytest.mark.parametrize("name", KILLED)
def test_a_function_that_dies_of_memory_or_time_is_told(machines: StubbedMachines, state: str, name: str) -> None:
    # Given: what Lambda, or the state, reports in place of the function, as often as it is retried
    machine, function, before = ENDING[state]
    names = [name] * (RETRIES + 1 if name in PASSING else 1)
    machines.set_answers(function, *before, *raising(names))
    # When
    end = machines.run(machine, DRY_RUN if machine == "backfill" else {})
    # Then
    assert (end["status"], end["error"]) == ("FAILED", name)
    assert len(machines.calls(function)) == len(before) + len(names)
    (notification,) = machines.take_notifications()
    assert f"The execution {end['name']} ended with {name}: " in notification


@pytest.mark.parametrize(
    "names", [pytest.param(STORMS[0], id=STORMS[0][0], marks=LONG), pytest.param([LASTING[0]], id=LASTING[0])]
)
def test_a_run_that_cannot_be_counted_gets_another_round_and_a_catalog_that_fails_changes_nothing(
    machines: StubbedMachines, names: list[str]
) -> None:
    # Given
    machines.set_answers("stub-run-status", *raising(names), NOTHING_OPEN)
    machines.set_answers("stub-catalog", *raising(names))
    # When, Then
    assert machines.run("overnight", {})["status"] == "SUCCEEDED"
    assert len(machines.calls("job")) == 2
    assert len(machines.calls("stub-catalog")) == len(names)


@pytest.mark.parametrize(
    "names", [pytest.param(STORMS[1], id=STORMS[1][0], marks=LONG), pytest.param([LASTING[1]], id=LASTING[1])]
)
def test_a_watch_that_fails_is_told_once_and_the_window_goes_on(machines: StubbedMachines, names: list[str]) -> None:
    # Given: two checks in succession that fail
    answers = [WATCHING, *raising(names), *raising(names), WATCHING, CLOSING, STOPPED]
    machines.set_answers("stub-stream-control", *answers)
    # When, Then
    assert machines.run("stream_window", {})["status"] == "SUCCEEDED"
    assert len(machines.calls("stub-stream-control")) == len(answers)
    (notification,) = machines.take_notifications()
    assert f"could not watch the stream: {names[-1]}: {names[-1]} of a test" in notification


def test_an_error_of_lambda_itself_whose_cause_is_plain_text_is_told(machines: StubbedMachines) -> None:
    end = machines.run(OVERNIGHT_WITHOUT_PLAN, {})
    assert (end["status"], end["error"]) == ("FAILED", "Lambda.ResourceNotFoundException")
    assert end["cause"] == "Function not found: stub-missing"
    (notification,) = machines.take_notifications()
    assert "Lambda.ResourceNotFoundException: Function not found: stub-missing" in notification


def test_every_error_of_starting_a_job_is_retried(machines: StubbedMachines) -> None:
    names = [name for group in job_errors() for name in group]
    machines.set_answers("stub-start-job-run", *raising(names), {})
    assert machines.run(OVERNIGHT_WITHOUT_GLUE, {})["status"] == "SUCCEEDED"
    assert len(machines.calls("stub-start-job-run")) == len(names) + 1
    assert len(machines.calls("stub-run-status")) == 1


@pytest.mark.parametrize("number", [0, pytest.param(1, marks=LONG)])
def test_a_storm_while_starting_a_job_ends_its_round_and_the_next_one_converts(
    machines: StubbedMachines, number: int
) -> None:
    # Given: one error more than the retries of this group
    errors = job_errors()[number]
    tries = JOB_RETRIES + 1
    names = (errors * tries)[:tries]
    machines.set_answers("stub-start-job-run", *raising(names), {})
    machines.set_answers("stub-run-status", ONE_OPEN, NOTHING_OPEN)
    # When, Then
    assert machines.run(OVERNIGHT_WITHOUT_GLUE, {})["status"] == "SUCCEEDED"
    assert len(machines.calls("stub-start-job-run")) == tries + 1
    # Then: the function that looks at the run learns why its job did not start, and only then
    told, nothing = (call["refusal"] for call in machines.calls("stub-run-status"))
    assert [call["failure"] for call in machines.calls("stub-run-status")] == ["", ""]
    assert told.startswith(f"{names[-1]}: ")
    assert f"{names[-1]} of a test" in told
    assert nothing == ""


def job_errors() -> list[list[str]]:
    """The groups of errors for which the start of a job is retried."""
    machine = json.loads((MACHINES / "overnight.asl.json").read_text(encoding="utf-8"))
    job = machine["States"]["Runs"]["ItemProcessor"]["States"]["RunJob"]
    return [retrier["ErrorEquals"] for retrier in job["Retry"]]


def settled(outcome: str) -> dict[str, Any]:
    return {"verdict": outcome, "message": "", "notify": False, "notification": "", "verdictUri": "s3://control/v.json"}
