"""The machine ``overnight`` starts, watches and stops each run by the engine that the plan names."""

from typing import Any

import pytest

from tests.e2e.machines.conftest import JOB, StubbedMachines
from tests.e2e.waiting import wait_for

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
    # Given: of two rounds that may fail, both do; then run_status names another engine, and another round fails
    stubbed.set_answers("stub-plan", stubbed.index("s3://control/runs/0", engine="glue-flex", fallback="glue"))
    stubbed.set_answers("job", 1, 1, 1, 0)
    done = {"open": 0, "terminal": 1, "held": 0}
    stubbed.set_answers("stub-run-status", OPEN, {**OPEN, "engine": "glue"}, OPEN, done)
    # When
    stubbed.run("overnight", {})
    # Then: held_rounds rounds, of which the third uses the other engine; the second was no round without progress
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

    # Given an execution with two runs that hang, and one that waits for its turn
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
