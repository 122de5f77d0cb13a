"""State machines fail at 256 KiB of state, where they would on AWS."""

import json
import uuid

import pytest

from tests.e2e.waiting import wait_for
from tests.roles import create_unlimited_role

MAX_BYTES = 262_144
CATCH_ALL = [{"ErrorEquals": ["States.ALL"], "Next": "Caught"}]
CAUGHT = {"Type": "Pass", "Output": "caught", "End": True}


@pytest.fixture(scope="module")
def role(probe):
    return create_unlimited_role(probe.client("iam"), "limits")


@pytest.fixture
def ended(probe, role):
    """Run states, of which the first is named Start, and return the execution when it has ended."""
    client = probe.client("stepfunctions")

    def run(states, given=None):
        definition = json.dumps({"QueryLanguage": "JSONata", "StartAt": "Start", "States": states})
        machine = client.create_state_machine(name=uuid.uuid4().hex, definition=definition, roleArn=role)
        request = {"stateMachineArn": machine["stateMachineArn"], "input": json.dumps(given)}
        arn = client.start_execution(**request)["executionArn"]
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
