"""The state machines take the right path for every answer of their functions and runs.

The unit tests in `tests/unit/infra` read from the files that every state retries and catches the right errors.
"""

import json
import re
from typing import Any

import pytest

from tests.e2e.machines.conftest import JOB, MACHINES, StubbedMachines, verdict
from tests.e2e.waiting import wait_for

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


@pytest.mark.parametrize(
    ("machine", "request_"),
    [("overnight", {"datset": "orders"}), ("overnight", ["orders"]), ("overnight", "orders"), ("backfill", ["orders"])],
)
def test_a_wrong_input_ends_with_one_sentence(stubbed: StubbedMachines, machine: str, request_: Any) -> None:
    # Given a function that rejects the input.
    function = {"overnight": "stub-plan", "backfill": "stub-backfill"}[machine]
    stubbed.set_answers(function, {"refused": "datset is unknown: set dataset", "error": "InvalidInputError"})
    end = stubbed.run(machine, request_)
    # Then the execution fails in its first task with exactly this sentence.
    assert (end["status"], end["error"]) == ("FAILED", "InvalidInputError")
    assert end["cause"] == "datset is unknown: set dataset"
    assert stubbed.take_notifications() == []
    # And an input that is not an object reaches the plan as an unknown field.
    given = request_ if isinstance(request_, dict) else {"input": request_}
    expected = {"action": "validate", **given} if machine == "backfill" else {**given, "execution": end["name"]}
    assert stubbed.calls(function) == [expected]


@pytest.mark.parametrize(
    ("verdicts", "error", "looks"), [(["OPEN", "SUCCEEDED"], None, 2), (["OPEN"], "OvernightOPEN", 3)]
)
def test_the_verdict_waits_for_live_leases_a_limited_time(
    stubbed: StubbedMachines, verdicts: list[str], error: str | None, looks: int
) -> None:
    stubbed.set_answers("stub-settle", *(verdict(name, "in progress", notify=name == "OPEN") for name in verdicts))
    assert stubbed.run("overnight", {}).get("error") == error
    assert len(stubbed.calls("stub-settle")) == looks


def test_an_index_that_cannot_be_read_still_gets_the_verdict_of_the_ledger(stubbed: StubbedMachines) -> None:
    stubbed.set_answers(
        "stub-plan", {"runs": 1, "maxConcurrency": 1, "index": {"bucket": "stubs", "key": "missing.json"}}
    )
    stubbed.set_answers("stub-settle", verdict("FAILED", "nothing was converted", notify=True))
    end = stubbed.run("overnight", {})
    assert (end["status"], end["error"]) == ("FAILED", "OvernightFAILED")
    # And people read why no run began, together with the ledger's reason
    (notification,) = stubbed.take_notifications()
    for text in (end["cause"], notification):
        assert "nothing was converted" in text
        assert "The runs could not be started: " in text


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
    answer, both, second = {"running": True, "windowOver": True}, {"1": ["jr_1"], "2": ["jr_2"]}, {"2": ["jr_2"]}
    # And another shard, which stops in the second round.
    stops = ({**answer, "stopped": False, "stopping": stopping} for stopping in (both, second, second))
    stubbed.set_answers("stub-stream-control", answer, *stops, answer)
    assert stubbed.run("stream_window", {})["status"] == "SUCCEEDED"
    # Then each round covers only the remaining shards.
    assert [(call["action"], call.get("shards")) for call in stubbed.calls("stub-stream-control")] == [
        ("start", None),
        ("stop", {}),
        ("stop", both),
        ("stop", second),
        ("kill", second),
    ]


@pytest.mark.parametrize(
    ("codes", "left", "failed", "jobs"),
    [
        ([1, 1, 0], [(2, 0, 0), (1, 0, 0), (0, 0, 0)], [True, True, False], 3),
        # Manifests of another run are waited for without a job run, and the next job run follows after their release.
        ([1, 0], [(3, 2, 1), (2, 0, 1), (1, 0, 1)], [True, False, False], 2),
        # held_rounds rounds
        ([0], [(1, 1, 0)], [False] * 3, 1),
        ([1], [(2, 0, 1), (1, 0, 1)], [True, True], 2),
    ],
    ids=["progress allows further failures", "held for a while", "held forever", "the rest is denied"],
)
def test_a_run_has_another_round_as_long_as_that_may_help(
    stubbed: StubbedMachines, codes: list[int], left: list[tuple[int, int, int]], failed: list[bool], jobs: int
) -> None:
    # Given the exit codes of a job, and the numbers of open, held and denied manifests after each round
    stubbed.set_answers("job", *codes)
    answers = ({"open": open_, "terminal": 0, "held": held, "denied": denied} for open_, held, denied in left)
    stubbed.set_answers("stub-run-status", *answers)
    # When
    assert stubbed.run("overnight", {})["status"] == "SUCCEEDED"
    # Then a round is a job run or a wait, and a failure is reported once
    looks = stubbed.calls("stub-run-status")
    assert [(call["failed"], bool(call["failure"])) for call in looks] == [(item, item) for item in failed]
    assert len(stubbed.calls("job")) == jobs


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
    # And the function that checks the run is informed of each outcome.
    calls = stubbed.calls("stub-run-status")
    for call in calls:
        assert re.fullmatch(rf"States.TaskFailed: {call['jobRun']} FAILED \S.*", call["failure"])
        assert call["refusal"] == ""
    assert len({call["jobRun"] for call in calls}) == 2


def test_a_dry_run_ends_with_the_forecast(stubbed: StubbedMachines) -> None:
    # Given: a plan for two runs, which has written nothing
    index = {"bucket": "control", "key": "none"}
    forecast = {"runs": 2, "maxConcurrency": 2, "index": index, "forecast": {"minutes": 7}}
    stubbed.set_answers("stub-plan", forecast)
    stubbed.set_answers("stub-settle", verdict("EMPTY", "it must not be asked"))
    # When
    end = stubbed.run("overnight", {"dryRun": True})
    # Then
    assert (end["status"], json.loads(end["output"])) == ("SUCCEEDED", forecast)
    assert (stubbed.calls("job"), stubbed.calls("stub-settle"), stubbed.take_notifications()) == ([], [], [])


EMR = "emr-serverless"
OPEN = {"open": 1, "terminal": 0, "held": 0}


def glue_runs(stubbed: StubbedMachines) -> list[dict[str, Any]]:
    runs: list[dict[str, Any]] = stubbed.cloud.client("glue").get_job_runs(JobName=JOB)["JobRuns"]
    return runs


def emr_runs(stubbed: StubbedMachines) -> list[dict[str, Any]]:
    """The newest first."""
    runs: list[dict[str, Any]] = stubbed.cloud.client(EMR).list_job_runs(applicationId=stubbed.emr_application)[
        "jobRuns"
    ]
    return runs


def test_a_run_uses_the_engine_that_run_status_names_from_its_next_round_on(stubbed: StubbedMachines) -> None:
    # Given: two of two allowed rounds fail; then run_status names another engine, and another round fails
    stubbed.set_answers("stub-plan", stubbed.index("s3://control/runs/0", engine="glue-flex", fallback="glue"))
    stubbed.set_answers("job", 1, 1, 1, 0)
    done = {"open": 0, "terminal": 1, "held": 0}
    stubbed.set_answers("stub-run-status", OPEN, {**OPEN, "engine": "glue"}, OPEN, done)
    # When
    stubbed.run("overnight", {})
    # Then: held_rounds rounds, the third on the other engine; the second was not a round without progress
    assert [run["ExecutionClass"] for run in reversed(glue_runs(stubbed)[:3])] == ["FLEX", "FLEX", "STANDARD"]
    rounds = [(call["engine"], call["failed"]) for call in stubbed.calls("stub-run-status")]
    assert rounds == [("glue-flex", True), ("glue-flex", True), ("glue", True)]


@pytest.mark.parametrize(
    ("begin_by", "execution_class"), [("2020-01-01T00:00:00.000+00:00", "STANDARD"), ("2999-01-01", "FLEX")]
)
def test_a_run_that_begins_too_late_for_its_engine_has_the_dearer_one_from_the_start(
    stubbed: StubbedMachines, begin_by: str, execution_class: str
) -> None:
    index = stubbed.index("s3://control/runs/0", engine="glue-flex", fallback="glue", beginBy=begin_by, workers=1)
    stubbed.set_answers("stub-plan", index)
    assert stubbed.run("overnight", {})["status"] == "SUCCEEDED"
    run = glue_runs(stubbed)[0]
    assert (run["ExecutionClass"], run["NumberOfWorkers"], run["WorkerType"]) == (execution_class, 1, "G.1X")


@pytest.mark.parametrize(("engine", "stopped"), [("glue", "STOPPED"), (EMR, "CANCELLED")])
def test_a_stopped_execution_stops_its_runs_and_starts_no_more(
    stubbed: StubbedMachines, engine: str, stopped: str
) -> None:
    def states_of_runs() -> list[str]:
        runs = emr_runs(stubbed) if engine == EMR else glue_runs(stubbed)
        return [run["state" if engine == EMR else "JobRunState"] for run in runs]

    # Given an execution with two hanging runs, and one that waits for its turn
    before = len(states_of_runs())
    runs = [f"s3://control/runs/{number}" for number in range(3)]
    stubbed.set_answers("stub-plan", stubbed.index(*runs, engine=engine))
    stubbed.set_answers("job", "hang")
    states = stubbed.cloud.client("stepfunctions")
    arn = states.start_execution(stateMachineArn=stubbed.machines["overnight"], input="{}")["executionArn"]
    wait_for("two runs to hang", lambda: states_of_runs()[: -before or None] == ["RUNNING"] * 2)
    # When it is stopped, then its runs are stopped, and the third one is never started
    states.stop_execution(executionArn=arn)
    (map_run,) = [entry["mapRunArn"] for entry in states.list_map_runs(executionArn=arn)["mapRuns"]]
    wait_for("all runs to end", lambda: states.describe_map_run(mapRunArn=map_run)["itemCounts"]["failed"] == len(runs))
    assert states_of_runs()[: -before or None] == [stopped] * 2


(RETRIER,) = json.loads((MACHINES / "lambda_retry.json").read_text(encoding="utf-8"))
STORM: list[str] = RETRIER["ErrorEquals"][: RETRIER["MaxAttempts"] + 1]
"""Errors that pass, one more than a state retries."""
LASTING = "TerminalError"


def raising(names: list[str]) -> list[dict[str, str]]:
    return [{"raise": name, "message": f"{name} of a test"} for name in names]


@pytest.mark.parametrize(
    ("machine", "function", "names", "next_step"),
    [
        ("overnight", "stub-plan", STORM, "hybrid-router overnight --stage test"),
        ("backfill", "stub-backfill", [LASTING], "start the backfill again with the same input"),
        ("stream_window", "stub-stream-control", [LASTING], "hybrid-router stream start --stage test"),
    ],
)
def test_a_lasting_error_ends_the_execution_and_is_reported(
    stubbed: StubbedMachines, machine: str, function: str, names: list[str], next_step: str
) -> None:
    # Given a function that dies too often, or fails permanently
    stubbed.set_answers(function, *raising(names))
    # When
    end = stubbed.run(machine, {})
    # Then: it was called once, and once more per allowed retry
    assert len(stubbed.calls(function)) == len(names)
    assert (end["status"], end["error"], end["cause"]) == ("FAILED", names[-1], f"{names[-1]} of a test")
    (notification,) = stubbed.take_notifications()
    assert f"The execution {end['name']} ended with {names[-1]}: {names[-1]} of a test" in notification
    assert next_step in notification


def test_a_run_that_cannot_be_counted_gets_another_round_and_a_catalog_that_fails_changes_nothing(
    stubbed: StubbedMachines,
) -> None:
    # Given
    stubbed.set_answers("stub-run-status", *raising([LASTING]), {"open": 0, "terminal": 1, "held": 0})
    stubbed.set_answers("stub-catalog", *raising([LASTING]))
    # When, Then
    assert stubbed.run("overnight", {})["status"] == "SUCCEEDED"
    assert len(stubbed.calls("job")) == 2
    assert len(stubbed.calls("stub-catalog")) == 1


def test_a_watch_that_fails_is_reported_once_and_the_window_continues(stubbed: StubbedMachines) -> None:
    # Given: two checks in succession that fail
    open_, over = ({"running": True, "windowOver": value, "stopped": False} for value in (False, True))
    answers = [open_, *raising([LASTING, LASTING]), open_, over, {**over, "stopped": True}]
    stubbed.set_answers("stub-stream-control", *answers)
    # When, Then
    assert stubbed.run("stream_window", {})["status"] == "SUCCEEDED"
    assert len(stubbed.calls("stub-stream-control")) == len(answers)
    (notification,) = stubbed.take_notifications()
    assert f"could not watch the stream: {LASTING}: {LASTING} of a test" in notification
