"""State machines fail where they would on AWS: at 256 KiB of state, and when a task times out, which ends its run."""

import json
import uuid

import pytest

from tests.e2e.local.local_probe import JOB
from tests.e2e.waiting import wait_for

MAX_BYTES = 262_144
CATCH_ALL = [{"ErrorEquals": ["States.ALL"], "Next": "Caught"}]
CAUGHT = {"Type": "Pass", "Output": "caught", "End": True}


@pytest.fixture
def ended(probe):
    """Run states, of which the first is named Start, and return the execution when it has ended."""
    client = probe.cloud.client("stepfunctions")

    def run(states):
        definition = json.dumps({"QueryLanguage": "JSONata", "StartAt": "Start", "States": states})
        machine = client.create_state_machine(name=uuid.uuid4().hex, definition=definition, roleArn=probe.role)
        arn = client.start_execution(stateMachineArn=machine["stateMachineArn"])["executionArn"]
        wait_for(f"the end of {arn}", lambda: client.describe_execution(executionArn=arn)["status"] != "RUNNING")
        return client.describe_execution(executionArn=arn)

    return run


def text_of(size: int) -> str:
    """A JSONata expression for a string that is ``size`` bytes long as JSON."""
    return f"{{% $pad('', {(size - 2) // 2}, 'é') & '{'x' * (size % 2)}' %}}"


def distributed(states, **fields):
    processor = {"ProcessorConfig": {"Mode": "DISTRIBUTED", "ExecutionType": "STANDARD"}, "StartAt": "Item"}
    return {"Type": "Map", "ItemProcessor": {**processor, "States": states}, **fields}


@pytest.mark.parametrize(("size", "status"), [(MAX_BYTES, "SUCCEEDED"), (MAX_BYTES + 1, "FAILED")])
def test_output_of_a_state_has_at_most_256_kib_of_utf_8(ended, size, status):
    end = ended({"Start": {"Type": "Pass", "Output": text_of(size), "End": True}})
    assert (end["status"], end.get("error")) == (status, None if status == "SUCCEEDED" else "States.DataLimitExceeded")


def test_arguments_of_a_task_that_are_too_large_are_caught_by_no_wildcard(ended):
    # Given a task whose arguments are too large, with Retry and Catch for all errors
    task = {
        "Type": "Task",
        "Resource": "arn:aws:states:::sns:publish",
        "Arguments": {"TopicArn": "none", "Message": text_of(MAX_BYTES)},
        "Retry": [{"ErrorEquals": ["States.ALL"], "IntervalSeconds": 1, "MaxAttempts": 3}],
        "Catch": CATCH_ALL,
        "End": True,
    }
    # When it runs, then neither takes the error
    end = ended({"Start": task, "Caught": CAUGHT})
    assert (end["status"], end["error"]) == ("FAILED", "States.DataLimitExceeded")
    # When a Catch names it, then that Catch does
    named = {**task, "Catch": [{"ErrorEquals": ["States.DataLimitExceeded"], "Next": "Caught"}]}
    assert ended({"Start": named, "Caught": CAUGHT})["output"] == '"caught"'


@pytest.mark.parametrize(("bytes_each", "status"), [(25_000, "SUCCEEDED"), (27_000, "FAILED")])
def test_results_of_all_children_together_have_at_most_256_kib(ended, bytes_each, status):
    # Given a Map that ends with an empty output, but whose ten children return something
    item = {"Item": {"Type": "Pass", "Output": text_of(bytes_each), "End": True}}
    each = distributed(item, Items=list(range(10)), Output={}, Catch=CATCH_ALL, End=True)
    # Then the children's results count before Output
    assert ended({"Start": each, "Caught": CAUGHT})["status"] == status


def test_map_feature_that_the_local_cloud_lacks_fails_loudly(ended):
    end = ended({"Start": distributed({"Item": CAUGHT}, Items=[1], ResultWriter={}, End=True)})
    assert (end["status"], end["cause"]) == ("FAILED", "The local cloud does not support ResultWriter.")


def test_task_that_times_out_stops_its_glue_run(probe, ended):
    # Given a machine whose only state limits a hanging run to two seconds
    arguments = {"JobName": JOB, "Arguments": {"--task": "hang"}}
    task = {"Type": "Task", "Resource": "arn:aws:states:::glue:startJobRun.sync", "Arguments": arguments}
    # When the time is over, then the execution fails and the run is stopped
    end = ended({"Start": {**task, "TimeoutSeconds": 2, "End": True}})
    assert (end["status"], end["error"]) == ("FAILED", "States.Timeout"), end["cause"]
    glue = probe.cloud.client("glue")
    wait_for("the end of the run", lambda: glue.get_job_runs(JobName=JOB)["JobRuns"][0]["JobRunState"] == "STOPPED")
