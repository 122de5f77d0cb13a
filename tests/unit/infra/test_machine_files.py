"""The state machines' files: reachable and described states, retries by name, placeholders that the stack fills."""

import json
import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import botocore.session
import pytest

from infra.functions import MAX_TIMEOUT_SECONDS
from lake import errors
from tests.unit.infra.conftest import Assembly

MACHINES = Path(__file__).parents[3] / "statemachines"
FILES = sorted(MACHINES.glob("*.asl.json"))
PLACEHOLDER = re.compile(r"\$\{(\w+)\}")
machine_files = pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)


def subclasses(root: type[BaseException]) -> set[str]:
    """Names of a class and of its subclasses in the same module; other tests may have defined more."""
    children = [child for child in root.__subclasses__() if child.__module__ == root.__module__]
    return {root.__name__}.union(*(subclasses(child) for child in children))


def graphs(machine: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The machine itself and the ones inside its Map states."""
    yield machine
    for state in machine["States"].values():
        if "ItemProcessor" in state:
            yield from graphs(state["ItemProcessor"])


def states(machine: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """(name, state) of all states, including the states inside Map states."""
    for graph in graphs(machine):
        yield from graph["States"].items()


def read(file: Path) -> dict[str, Any]:
    return json.loads(file.read_text(encoding="utf-8"))


@machine_files
def test_every_lambda_call_has_the_retry_of_the_one_source(file: Path) -> None:
    source = json.loads((MACHINES / "lambda_retry.json").read_text(encoding="utf-8"))
    own = {error for error in source[0]["ErrorEquals"] if "." not in error}
    # Timeouts of Lambda and of the state, and a lost report, are retried; a retry would not get more memory
    assert {"Sandbox.Timedout", "States.Timeout", "Lambda.Unknown"} <= set(source[0]["ErrorEquals"])
    assert "Runtime.ExitError" not in source[0]["ErrorEquals"]
    assert own == subclasses(errors.TransientError)
    calls = {name: state for name, state in states(read(file)) if state.get("Resource", "").endswith("lambda:invoke")}
    assert calls or file.name == "verify.asl.json"
    for name, state in calls.items():
        assert state["Retry"] == source, f"{name} of {file.name}: copy statemachines/lambda_retry.json into its Retry"


def test_an_outage_of_five_minutes_does_not_end_a_night_and_a_function_that_hangs_does_within_hours() -> None:
    # Given the calls that are retried: a function, and a Map whose list of runs cannot be read
    (retrier,) = json.loads((MACHINES / "lambda_retry.json").read_text(encoding="utf-8"))
    (reader,) = read(MACHINES / "overnight.asl.json")["States"]["Runs"]["Retry"]
    assert reader == {**retrier, "ErrorEquals": ["States.ItemReaderFailed"]}
    # And the waits between the tries, each shortened at random, to half on average
    first, factor, longest = (retrier[name] for name in ("IntervalSeconds", "BackoffRate", "MaxDelaySeconds"))
    waits = [min(first * factor**number, longest) for number in range(retrier["MaxAttempts"])]
    # Then they are longer than the outage, even if their sum is two deviations below its average
    deviation = math.sqrt(sum(wait**2 for wait in waits) / 12)
    assert sum(waits) / 2 - 2 * deviation > 300
    # And a function whose every invocation times out does not take half of the night before the execution fails
    assert sum(waits) + (len(waits) + 1) * MAX_TIMEOUT_SECONDS < 2.5 * 3600


@machine_files
def test_the_stack_fills_in_every_placeholder_and_no_other(file: Path, other_assembly: Assembly) -> None:
    part = file.name.partition(".")[0].title().replace("_", "")
    deployed = other_assembly.one("AWS::StepFunctions::StateMachine", f"Machines{part}")
    text = file.read_text(encoding="utf-8")
    assert deployed["DefinitionString"] == text
    assert set(deployed["DefinitionSubstitutions"]) == set(PLACEHOLDER.findall(text))


def test_overnight_outlasts_the_longest_run_and_backfill_outlasts_overnight() -> None:
    overnight, backfill = (
        read(next(file for file in FILES if file.name.startswith(name))) for name in ("overnight", "backfill")
    )
    max_run_seconds = 10_080 * 60
    for name in ("RunJob", "RunOnEmr"):
        run = overnight["States"]["Runs"]["ItemProcessor"]["States"][name]
        assert max_run_seconds < run["TimeoutSeconds"] < overnight["TimeoutSeconds"]
    assert overnight["TimeoutSeconds"] < backfill["States"]["Overnight"]["TimeoutSeconds"]


GOES_ON = {
    "Check": "the round counts as one without progress, and Settle tells what is left",
    "Catalog": "a schedule calls the same function, and its errors raise an alarm",
}
"""Lambda states whose failure does not end the execution."""
TOLD_AND_GOES_ON = "Watch"
PASSING_INVOKE_ERRORS = {
    "ResourceConflictException",
    "ResourceNotReadyException",
    "ServiceException",
    "TooManyRequestsException",
}
"""Modelled errors of Lambda's Invoke that pass, and can occur: the functions have no VPC, file system or SnapStart."""
PASSING_RUN_ERRORS = {
    "ConcurrentRunsExceededException",
    "InternalServiceException",
    "OperationTimeoutException",
    "ResourceNumberLimitExceededException",
}
"""Modelled errors of Glue's StartJobRun that pass."""
PASSING_EMR_ERRORS = {"ConflictException", "InternalServerException"}
"""Errors of EMR Serverless that pass: a conflict is an application that is just being stopped."""
MAX_STATE_BYTES = 256 * 1024


def modelled(service: str, operation: str) -> set[str]:
    model = botocore.session.get_session().get_service_model(service)
    return {shape.name for shape in model.operation_model(operation).error_shapes}


def retried(state: dict[str, Any]) -> set[str]:
    return {error for retrier in state["Retry"] for error in retrier["ErrorEquals"]}


@pytest.mark.parametrize(
    ("resource", "service", "operation", "prefix", "passing"),
    [
        ("lambda:invoke", "lambda", "Invoke", "Lambda.", PASSING_INVOKE_ERRORS),
        ("glue:startJobRun.sync", "glue", "StartJobRun", "Glue.", PASSING_RUN_ERRORS | {"ThrottlingException"}),
        (
            "emr-serverless:startJobRun.sync",
            "emr-serverless",
            "StartJobRun",
            "EMRServerless.",
            PASSING_EMR_ERRORS | {"ThrottlingException"},
        ),
        (
            "states:startExecution.sync:2",
            "stepfunctions",
            "StartExecution",
            "StepFunctions.",
            {"ExecutionLimitExceeded", "ThrottlingException"},
        ),
    ],
)
def test_the_transient_errors_among_the_modelled_ones_of_a_call_are_retried(
    resource: str, service: str, operation: str, prefix: str, passing: set[str]
) -> None:
    names = modelled(service, operation) | {"ThrottlingException"}
    assert passing <= names
    calls = [
        state
        for file in FILES
        for graph in graphs(read(file))
        for state in graph["States"].values()
        if state.get("Resource", "").endswith(resource)
    ]
    assert calls
    for state in calls:
        assert {name for name in names if prefix + name in retried(state)} == passing
        # And errors without a name from the service or its client: a server error, a lost connection
        assert {f"{prefix}AWS{prefix[:-1]}Exception", f"{prefix}SdkClientException"} <= retried(state)


@machine_files
def test_every_error_of_a_task_is_caught_and_reported(file: Path) -> None:
    for graph in graphs(read(file)):
        ending: list[Any] = []
        for name, state in graph["States"].items():
            if state["Type"] in ("Task", "Map"):
                assert state["Catch"][-1]["ErrorEquals"] == ["States.ALL"], name
                # And a rule before the last one, which notifies nobody, handles only an invalid input
                assert all(rule["ErrorEquals"] == ["InvalidInputError"] for rule in state["Catch"][:-1]), name
            # A scheduled verification has no function
            if (state.get("Resource", "").endswith("lambda:invoke") or name == "Compare") and name not in GOES_ON:
                assert "sns:publish" in resource_after(graph, state["Catch"][-1]["Next"]), name
                ending += [state["Catch"][-1]] if name != TOLD_AND_GOES_ON else []
        # And the states that end the execution use the same path: `tests/e2e/machines` tests one of each machine
        assert all(rule == ending[0] for rule in ending)


def resource_after(graph: dict[str, Any], name: str) -> str:
    """The resource of the task that follows, also after a choice."""
    state = graph["States"][name]
    return resource_after(graph, state["Choices"][0]["Next"]) if state["Type"] == "Choice" else state["Resource"]


def test_80000_children_of_the_map_return_less_than_a_state_may_hold() -> None:
    machine = read(MACHINES / "overnight.asl.json")
    child = machine["States"]["Runs"]["ItemProcessor"]["States"]
    ends = [state for state in child.values() if state.get("End") or state["Type"] == "Succeed"]
    assert [state["Output"] for state in ends] == [{}]
    # The outputs of all children are one array before the Output of the Map applies.
    assert len(json.dumps([state["Output"] for state in ends] * 80_000, separators=(",", ":"))) < MAX_STATE_BYTES
