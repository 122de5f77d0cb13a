"""State machines on the local cloud are really interpreted, with Glue runs as their tasks."""

from __future__ import annotations

import json

from local_probe import eventually


def test_distributed_map_over_a_list_on_s3_runs_one_glue_run_each(probe):
    # Given a list of three items, one of which fails
    key = probe.put_json("items/three.json", [{"mode": "succeed"}, {"mode": "fail"}, {"mode": "succeed"}])
    # When the machine runs over it
    end = probe.ended_execution(probe.execute("Night", {"bucket": probe.outputs["Bucket"], "key": key, "started": "-"}))
    # Then each item has its own outcome, in order
    assert end["status"] == "SUCCEEDED", end
    failed = {"state": "FAILED", "cause": "ValueError: asked to fail"}
    assert json.loads(end["output"]) == {"states": [{"state": "SUCCEEDED"}, failed, {"state": "SUCCEEDED"}]}


def test_nested_execution_waits_and_returns_the_inner_output(probe):
    key = probe.put_json("items/one.json", [{"mode": "succeed"}])
    end = probe.ended_execution(probe.execute("Outer", {"bucket": probe.outputs["Bucket"], "key": key, "started": "-"}))
    assert end["status"] == "SUCCEEDED", end
    assert json.loads(end["output"]) == {"states": [{"state": "SUCCEEDED"}]}


def test_failed_function_is_caught_by_its_exceptions_class_name(probe):
    # Given no items, and a last step whose function raises ProbeError
    key = probe.put_json("items/none.json", [])
    given = {"bucket": probe.outputs["Bucket"], "key": key, "fail": True}
    end = probe.ended_execution(probe.execute("Night", given))
    # Then the Catch for ProbeError took it
    assert json.loads(end["output"]) == {"caught": "ProbeError"}


def test_stopped_execution_stops_its_glue_runs_and_starts_no_more(probe):
    # Given an execution with two runs hanging and one more waiting for its turn
    bucket = probe.outputs["Bucket"]
    key = probe.put_json("items/hang.json", [{"mode": "hang"}] * 3)
    arn = probe.execute("Night", {"bucket": bucket, "key": key, "started": f"{bucket}/hang/aborted.json"})
    glue = probe.client("glue")
    before = {run["Id"] for run in glue.get_job_runs(JobName="probe-batch")["JobRuns"]}

    def hanging():
        runs = glue.get_job_runs(JobName="probe-batch")["JobRuns"]
        return [run for run in runs if run["Arguments"]["--task"] == "hang" and run["JobRunState"] == "RUNNING"]

    eventually(lambda: len(hanging()) == 2)
    # When it is stopped
    probe.client("stepfunctions").stop_execution(executionArn=arn)
    # Then its runs are stopped and the third never starts
    eventually(lambda: not hanging())
    states = [
        run["JobRunState"] for run in glue.get_job_runs(JobName="probe-batch")["JobRuns"] if run["Id"] not in before
    ]
    assert set(states) <= {"STOPPED"}
    arns = [entry["mapRunArn"] for entry in probe.client("stepfunctions").list_map_runs(executionArn=arn)["mapRuns"]]
    eventually(
        lambda: all(
            probe.client("stepfunctions").describe_map_run(mapRunArn=each)["itemCounts"]["failed"] == 3 for each in arns
        )
    )
    assert (
        sum(run["Arguments"]["--task"] == "hang" for run in glue.get_job_runs(JobName="probe-batch")["JobRuns"][:3])
        == 2
    )
