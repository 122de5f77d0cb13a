"""The local cloud interprets state machines, with Glue runs as their tasks."""

import json

from local.isolation import REGION
from tests.e2e.waiting import wait_for
from tests.roles import create_unlimited_role


def test_distributed_map_over_a_list_on_s3_runs_one_glue_run_each(probe):
    # Given a list of three items, one of which fails
    key = probe.put_json("items/three.json", [{"mode": "succeed"}, {"mode": "fail"}, {"mode": "succeed"}])
    # When the machine runs over it
    end = probe.ended_execution(
        probe.execute("Overnight", {"bucket": probe.outputs["Bucket"], "key": key, "started": "-"})
    )
    # Then each item has its own outcome, in the order of the list
    assert end["status"] == "SUCCEEDED", end
    failed = {"state": "FAILED", "cause": "ValueError: asked to fail"}
    assert json.loads(end["output"]) == {"states": [{"state": "SUCCEEDED"}, failed, {"state": "SUCCEEDED"}]}


def test_failed_function_is_caught_by_its_exceptions_class_name(probe):
    # Given no items, and a last step whose function raises ProbeError
    key = probe.put_json("items/none.json", [])
    given = {"bucket": probe.outputs["Bucket"], "key": key, "fail": True}
    end = probe.ended_execution(probe.execute("Overnight", given))
    # Then the Catch for ProbeError handled it
    assert json.loads(end["output"]) == {"caught": "ProbeError"}


def test_stopped_execution_stops_its_glue_runs_and_starts_no_more(probe):
    # Given an execution with two hanging runs and one that waits for a free slot
    bucket, states = probe.outputs["Bucket"], probe.client("stepfunctions")
    started = f"{bucket}/hang/aborted.json"
    key = probe.put_json("items/hang.json", [{"mode": "hang"}] * 3)
    arn = probe.execute("Overnight", {"bucket": bucket, "key": key, "started": started})

    def run_states():
        runs = probe.client("glue").get_job_runs(JobName="probe-batch")["JobRuns"]
        return [run["JobRunState"] for run in runs if run["Arguments"].get("--started") == started]

    wait_for("both runs to hang", lambda: run_states() == ["RUNNING", "RUNNING"])
    assert probe.object_json("hang/aborted.json")
    # When it is stopped
    states.stop_execution(executionArn=arn)
    # Then its runs are stopped, and the third item ends without a run
    wait_for("both runs to be stopped", lambda: run_states() == ["STOPPED", "STOPPED"])
    (map_run,) = [entry["mapRunArn"] for entry in states.list_map_runs(executionArn=arn)["mapRuns"]]
    wait_for("all items to end", lambda: states.describe_map_run(mapRunArn=map_run)["itemCounts"]["failed"] == 3)
    assert run_states() == ["STOPPED", "STOPPED"]


def test_task_that_times_out_stops_its_glue_run(probe):
    # Given a machine whose only state limits a hanging run to two seconds
    started = f"{probe.outputs['Bucket']}/hang/task-timeout.json"
    task = {
        "Type": "Task",
        "Resource": "arn:aws:states:::glue:startJobRun.sync",
        "Arguments": {
            "JobName": "probe-stream",
            "Arguments": {"--task": "hang", "--started": started, "--region": REGION},
        },
        "TimeoutSeconds": 2,
        "End": True,
    }
    definition = json.dumps({"QueryLanguage": "JSONata", "StartAt": "Hang", "States": {"Hang": task}})
    states = probe.client("stepfunctions")
    role = create_unlimited_role(probe.client("iam"), "impatient")
    arn = states.create_state_machine(name="impatient", definition=definition, roleArn=role)
    execution = states.start_execution(stateMachineArn=arn["stateMachineArn"])["executionArn"]
    # When the time is over, then the execution fails and the run is stopped
    end = probe.ended_execution(execution)
    assert (end["status"], end["error"]) == ("FAILED", "States.Timeout"), end["cause"]

    def hanging():
        runs = probe.client("glue").get_job_runs(JobName="probe-stream")["JobRuns"]
        return [run["JobRunState"] for run in runs if run["Arguments"].get("--started") == started]

    wait_for("the run to be stopped", lambda: hanging() == ["STOPPED"])


def test_map_feature_that_the_local_cloud_lacks_fails_loudly(probe):
    processor = {
        "ProcessorConfig": {"Mode": "DISTRIBUTED", "ExecutionType": "STANDARD"},
        "StartAt": "Done",
        "States": {"Done": {"Type": "Pass", "End": True}},
    }
    each = {"Type": "Map", "Items": [1], "ItemProcessor": processor, "ResultWriter": {}, "End": True}
    definition = json.dumps({"QueryLanguage": "JSONata", "StartAt": "Each", "States": {"Each": each}})
    states = probe.client("stepfunctions")
    role = create_unlimited_role(probe.client("iam"), "writing")
    arn = states.create_state_machine(name="writing", definition=definition, roleArn=role)
    end = probe.ended_execution(states.start_execution(stateMachineArn=arn["stateMachineArn"])["executionArn"])
    assert (end["status"], end["cause"]) == ("FAILED", "The local cloud does not support ResultWriter.")
