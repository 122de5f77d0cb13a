"""The state machines take the right path for every answer of their functions and runs."""

import json
import re
from typing import Any

import pytest

from tests.e2e.machines.conftest import StubbedMachines, verdict

REQUEST = {"dataset": "orders", "from": "2026-11-01T00", "to": "2026-11-02T23", "dryRun": False}
RAISES = {"raiseRefusal": True}
"""A state machine catches what it has not got from a person."""
TOTALS = {"found": 5, "known": 2, "recorded": 3, "unsettled": 0, "bytes": 30, "archived": 0}


def output(end: dict[str, Any]) -> dict[str, Any]:
    assert end["status"] == "SUCCEEDED", end
    return json.loads(end["output"])


def test_nothing_to_do_starts_no_job(stubbed: StubbedMachines) -> None:
    stubbed.set_answers("stub-plan", stubbed.index())
    stubbed.set_answers("stub-settle", verdict("EMPTY", "nothing was waiting"))
    assert output(stubbed.run("overnight", {}))["verdict"] == "EMPTY"
    assert stubbed.calls("job") == []


@pytest.mark.parametrize("request_", [{"datset": "orders"}, ["orders"], "orders"])
def test_a_wrong_input_ends_with_one_sentence(stubbed: StubbedMachines, request_: Any) -> None:
    # Given a plan that rejects its input.
    stubbed.set_answers("stub-plan", {"refused": "datset is unknown: set dataset", "error": "InvalidInputError"})
    end = stubbed.run("overnight", request_)
    # Then the execution fails in its first task with exactly this sentence.
    assert (end["status"], end["error"]) == ("FAILED", "InvalidInputError")
    assert end["cause"] == "datset is unknown: set dataset"
    # And an input that is not an object reaches the plan as an unknown field.
    expected = request_ if isinstance(request_, dict) else {"input": request_}
    assert stubbed.calls("stub-plan") == [{**expected, "execution": end["name"]}]
    assert stubbed.take_notifications() == []


def test_progress_allows_further_failures(stubbed: StubbedMachines) -> None:
    # Given a job that fails twice, each time with fewer open manifests than before.
    stubbed.set_answers("stub-plan", {**stubbed.index("s3://control/runs/0"), "runs": 1})
    stubbed.set_answers("job", 1, 1, 0)
    left = [{"open": number, "terminal": 0, "held": 0} for number in (2, 1, 0)]
    stubbed.set_answers("stub-run-status", *left)
    assert stubbed.run("overnight", {})["status"] == "SUCCEEDED"
    assert len(stubbed.calls("job")) == 3


def test_a_failed_run_does_not_stop_the_others(stubbed: StubbedMachines) -> None:
    stubbed.set_answers("stub-plan", stubbed.index(*(f"s3://control/runs/{number}" for number in range(3))))
    stubbed.set_answers("job", 1, 0, 0)
    assert stubbed.run("overnight", {})["status"] == "SUCCEEDED"
    assert len({call["run"] for call in stubbed.calls("job")}) == 3


def test_the_verdict_waits_for_live_leases(stubbed: StubbedMachines) -> None:
    stubbed.set_answers("stub-settle", verdict("OPEN", "still in progress", notify=True), verdict("SUCCEEDED", "done"))
    assert output(stubbed.run("overnight", {}))["verdict"] == "SUCCEEDED"
    assert len(stubbed.calls("stub-settle")) == 2


def test_a_lease_that_never_ends_fails_the_execution(stubbed: StubbedMachines) -> None:
    stubbed.set_answers("stub-settle", verdict("OPEN", "still in progress", notify=True))
    end = stubbed.run("overnight", {})
    assert (end["status"], end["error"]) == ("FAILED", "OvernightOPEN")
    assert len(stubbed.calls("stub-settle")) == 3


def test_an_index_that_cannot_be_read_still_gets_the_verdict_of_the_ledger(stubbed: StubbedMachines) -> None:
    stubbed.set_answers(
        "stub-plan", {"runs": 1, "maxConcurrency": 1, "index": {"bucket": "stubs", "key": "missing.json"}}
    )
    stubbed.set_answers("stub-settle", verdict("FAILED", "nothing was converted", notify=True))
    end = stubbed.run("overnight", {})
    assert (end["status"], end["error"]) == ("FAILED", "OvernightFAILED")
    # And people read why no run began, as well as what the ledger says
    (notification,) = stubbed.take_notifications()
    for text in (end["cause"], notification):
        assert "nothing was converted" in text
        assert "The runs could not be started: " in text


@pytest.mark.parametrize("notify", [True, False])
def test_an_execution_with_a_quarantine_succeeds_and_notifies_as_settle_says(
    stubbed: StubbedMachines, notify: bool
) -> None:
    # Given: every manifest is done, and lines are in the quarantine
    message = "its manifest is done: 3 rows; 2 lines could not become a row"
    stubbed.set_answers("stub-settle", verdict("SUCCEEDED_WITH_QUARANTINE", message, notify=notify))
    # When
    result = output(stubbed.run("overnight", {}))
    # Then
    assert result["verdict"] == "SUCCEEDED_WITH_QUARANTINE"
    assert stubbed.take_notifications() == [f"SUCCEEDED_WITH_QUARANTINE: {message}"] * notify


def test_backfill_finds_all_objects_and_starts_overnight(stubbed: StubbedMachines) -> None:
    # Given a listing that takes two calls, the second one after a wait.
    first = {**TOTALS, "found": 2, "token": "next", "waitSeconds": 1}
    last = {**TOTALS, "token": None, "waitSeconds": 0}
    stubbed.set_answers("stub-backfill", REQUEST, first, last)
    # When a person starts it.
    result = output(stubbed.run("backfill", {"dataset": "orders"}))
    # Then the second call continued where the first ended, and overnight got the range.
    validate, *finds = stubbed.calls("stub-backfill")
    assert validate == {"action": "validate", "input": {"dataset": "orders"}}
    tokens = [None, "next"]
    assert finds == [{"action": "find", "request": REQUEST, "token": token, **RAISES} for token in tokens]
    (plan,) = stubbed.calls("stub-plan")
    assert {key: plan[key] for key in plan if key != "execution"} == {
        name: value for name, value in REQUEST.items() if name != "dryRun"
    }
    assert result["search"] == TOTALS
    assert result["overnight"]["verdict"] == "SUCCEEDED"


def test_a_wrong_backfill_says_what_to_change(stubbed: StubbedMachines) -> None:
    stubbed.set_answers("stub-backfill", {"refused": "from is later than to: swap them", "error": "InvalidInputError"})
    end = stubbed.run("backfill", {"from": "2026-12-01", "to": "2026-11-01"})
    assert (end["status"], end["error"], end["cause"]) == (
        "FAILED",
        "InvalidInputError",
        "from is later than to: swap them",
    )


def test_a_backfill_fails_if_overnight_fails(stubbed: StubbedMachines) -> None:
    stubbed.set_answers("stub-backfill", REQUEST, {**TOTALS, "token": None, "waitSeconds": 0})
    stubbed.set_answers("stub-settle", verdict("FAILED", "1 manifest failed", notify=True))
    end = stubbed.run("backfill", {})
    assert (end["status"], end["error"]) == ("FAILED", "BackfillFailed")
    assert end["cause"]


def test_the_window_watches_then_stops_the_stream(stubbed: StubbedMachines) -> None:
    # Given a window that is over at the second check, and a run that ends after one more round.
    open_, over = ({"running": True, "windowOver": value, "stopped": False} for value in (False, True))
    stubbed.set_answers("stub-stream-control", open_, open_, over, over, {**over, "running": False, "stopped": True})
    assert stubbed.run("stream_window", {})["status"] == "SUCCEEDED"
    actions = [call["action"] for call in stubbed.calls("stub-stream-control")]
    assert actions == ["start", "watch", "watch", "stop", "stop"]


def test_a_run_that_does_not_stop_in_time_is_killed(stubbed: StubbedMachines) -> None:
    answer = {"running": True, "windowOver": True, "stopped": False}
    # And another shard, which stops in the second round.
    stubbed.set_answers(
        "stub-stream-control", answer, {**answer, "stopping": "1,2"}, *([{**answer, "stopping": "2"}] * 2), answer
    )
    assert stubbed.run("stream_window", {})["status"] == "SUCCEEDED"
    # Then each round is about those that are left.
    assert [(call["action"], call.get("shards")) for call in stubbed.calls("stub-stream-control")] == [
        ("start", None),
        ("stop", ""),
        ("stop", "1,2"),
        ("stop", "2"),
        ("kill", "2"),
    ]


def test_a_held_manifest_is_waited_for_without_a_glue_run(stubbed: StubbedMachines) -> None:
    # Given a job that fails, and leaves what another run holds, and a manifest that it was denied.
    stubbed.set_answers("job", 1, 0)
    left = [{"open": open_, "terminal": 0, "held": held, "denied": 1} for open_, held in ((3, 2), (2, 0), (1, 0))]
    stubbed.set_answers("stub-run-status", *left)
    assert stubbed.run("overnight", {})["status"] == "SUCCEEDED"
    # Then the next job run follows when that one has let go of it, and the first one has failed only once.
    assert len(stubbed.calls("job")) == 2
    found = [(call["failed"], bool(call["failure"])) for call in stubbed.calls("stub-run-status")]
    assert found == [(True, True), (False, False), (False, False)]


def test_waiting_for_another_run_is_limited(stubbed: StubbedMachines) -> None:
    stubbed.set_answers("stub-run-status", {"open": 1, "terminal": 0, "held": 1})
    stubbed.run("overnight", {})
    # Then there were held_rounds rounds.
    assert (len(stubbed.calls("job")), len(stubbed.calls("stub-run-status"))) == (1, 3)


def test_what_a_job_run_was_denied_starts_no_further_one(stubbed: StubbedMachines) -> None:
    # Given a job that leaves two manifests, and then the one that it was denied
    stubbed.set_answers("job", 1)
    status = {"terminal": 0, "held": 0, "denied": 1}
    stubbed.set_answers("stub-run-status", {"open": 2, **status}, {"open": 1, **status})
    stubbed.run("overnight", {})
    assert len(stubbed.calls("job")) == 2


def test_a_job_that_fails_without_progress_runs_max_attempts_times(stubbed: StubbedMachines) -> None:
    # Given a job that always fails, and no other run that holds its manifests.
    stubbed.set_answers("job", 1)
    stubbed.set_answers("stub-run-status", {"open": 1, "terminal": 0, "held": 0})
    stubbed.set_answers("stub-settle", verdict("FAILED", "1 manifest is not done", notify=True))
    end = stubbed.run("overnight", {})
    # Then it ran max_attempts times, the verdict fails the execution, and people are notified.
    assert len(stubbed.calls("job")) == 2
    assert (end["status"], end["error"]) == ("FAILED", "OvernightFAILED")
    assert end["cause"] == "1 manifest is not done. See s3://control/verdict.json"
    assert stubbed.take_notifications() == ["FAILED: 1 manifest is not done"]
    # And the function that looks at the run learns of each how it ended.
    calls = stubbed.calls("stub-run-status")
    for call in calls:
        assert re.fullmatch(rf"States.TaskFailed: {call['jobRun']} FAILED \S.*", call["failure"])
        assert call["refusal"] == ""
    assert len({call["jobRun"] for call in calls}) == 2


def test_a_dry_run_ends_with_the_forecast(stubbed: StubbedMachines) -> None:
    # Given: two runs would be planned, and nothing was written
    index = {"bucket": "control", "key": "none"}
    forecast = {"runs": 2, "maxConcurrency": 2, "index": index, "forecast": {"minutes": 7}}
    stubbed.set_answers("stub-plan", forecast)
    stubbed.set_answers("stub-settle", verdict("EMPTY", "it must not be asked"))
    # When
    end = stubbed.run("overnight", {"dryRun": True})
    # Then
    assert (end["status"], json.loads(end["output"])) == ("SUCCEEDED", forecast)
    assert (stubbed.calls("job"), stubbed.calls("stub-settle"), stubbed.take_notifications()) == ([], [], [])
