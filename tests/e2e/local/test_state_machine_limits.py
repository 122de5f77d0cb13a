"""State machines fail where they would on AWS: at 256 KiB of state and at 25,000 events."""

from __future__ import annotations

import json
import uuid

import pytest
from botocore.exceptions import ClientError
from ministack.services import stepfunctions  # type: ignore[import-untyped]

from local.emulator_patches import execution_history
from tests.e2e.waiting import wait_for
from tests.roles import create_unlimited_role

MAX_BYTES = 262_144
CATCH_ALL = [{"ErrorEquals": ["States.ALL"], "Next": "Caught"}]
CAUGHT = {"Type": "Pass", "Output": "caught", "End": True}


@pytest.fixture(scope="module")
def role(empty_cloud):
    return create_unlimited_role(empty_cloud.client("iam"), "limits")


@pytest.fixture
def ended(empty_cloud, role):
    """Run states, of which the first is named Start, and return the execution when it has ended."""
    client = empty_cloud.client("stepfunctions")

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


def test_children_that_return_nothing_need_no_room(ended):
    item = {"Item": {"Type": "Pass", "Output": {}, "End": True}}
    end = ended({"Start": distributed(item, Items=list(range(200)), Output={}, End=True)})
    assert end["output"] == "{}"


@pytest.mark.parametrize("operation", ["start_execution", "start_sync_execution"])
def test_input_of_an_execution_has_at_most_256_kib(empty_cloud, role, operation):
    client = empty_cloud.client("stepfunctions")
    definition = json.dumps({"StartAt": "Start", "States": {"Start": {"Type": "Pass", "End": True}}})
    machine = client.create_state_machine(name=uuid.uuid4().hex, definition=definition, roleArn=role)["stateMachineArn"]
    start = getattr(client, operation)
    start(stateMachineArn=machine, input=json.dumps("x" * (MAX_BYTES - 2)))
    with pytest.raises(ClientError, match="ValidationException"):
        start(stateMachineArn=machine, input=json.dumps("x" * (MAX_BYTES - 1)))
    for name in ("n" * 81, "two words", "a/b", "a:b"):
        with pytest.raises(ClientError, match="InvalidName"):
            start(stateMachineArn=machine, name=name)


def test_execution_fails_at_25_000_events_and_no_catch_takes_it(ended):
    # Given a loop of a Pass and a Choice, four events a round, until it has gone round ``rounds`` times
    loop = {
        "Start": {"Type": "Pass", "Output": "{% $states.input + 1 %}", "Next": "Again"},
        "Again": {
            "Type": "Choice",
            "Choices": [{"Condition": "{% $states.input < 6240 %}", "Next": "Start"}],
            "Default": "End",
        },
        "End": {"Type": "Succeed"},
    }
    # When it has gone round 6,240 times, then there was room: 24,964 events
    assert ended(loop, 0)["output"] == "6240"
    # When it goes round ten more times, then the execution fails
    end = ended(loop, -10)
    assert (end["status"], end["error"]) == ("FAILED", "States.Runtime")
    assert end["cause"] == "The execution reached the maximum number of history events (25000)."


def test_failed_tasks_of_a_loop_count_although_each_is_caught(ended):
    # Given a task that always fails, is tried once more and caught, and a loop around it: nine events a round
    task = {
        "Type": "Task",
        "Resource": "arn:aws:states:::sns:publish",
        "Arguments": {"TopicArn": "arn:aws:sns:eu-central-1:111122223333:none", "Message": "hello"},
        "Retry": [{"ErrorEquals": ["States.ALL"], "IntervalSeconds": 0, "MaxAttempts": 1}],
        "Catch": [{"ErrorEquals": ["States.ALL"], "Next": "Start", "Output": "{% $states.input %}"}],
        "End": True,
    }
    end = ended({"Start": task})
    assert (end["status"], end["error"]) == ("FAILED", "States.Runtime")


def test_distributed_child_has_a_history_of_its_own(ended):
    # Given 2,600 children of one state each: 10,400 events if they counted here, and each alone has four
    item = {"Item": {"Type": "Pass", "Output": {}, "End": True}}
    inner = distributed(item, Items="{% [1..2600] %}", Output={}, Next="Again")
    # When the Map runs three times in one execution
    end = ended({"Start": inner, "Again": {**inner, "Next": "Last"}, "Last": {**inner, "Next": "Done"}, "Done": CAUGHT})
    # Then there is room for it
    assert end["status"] == "SUCCEEDED", end.get("cause")


@pytest.mark.parametrize(("given", "limited"), [(0, 40), (10, 10), (1000, 40), ("{% 30 + 20 %}", 40)])
def test_inline_map_runs_at_most_40_items_at_once(monkeypatch, given, limited):
    # Given the emulator's Map, which runs as many items at once as it is told
    told = []
    monkeypatch.setattr(stepfunctions, "_run_map_items", lambda state, *_: told.append(state["MaxConcurrency"]))
    # When the patch is applied, then it is told 40 at most
    execution_history.limit_inline_concurrency()
    stepfunctions._run_map_items({"MaxConcurrency": given, "QueryLanguage": "JSONata"}, [], {}, {})
    assert told == [limited]
