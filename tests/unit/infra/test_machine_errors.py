"""What becomes of an error in a state machine: it is retried by name, then caught, and a person is told."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import botocore.session
import pytest

from lake import errors
from tests.unit.infra.test_machine_files import FILES, MACHINES, graphs, machine_files, read, subclasses

GOES_ON = {
    "CurrentEngine": "the engine of the plan stays",
    "Check": "the round counts as one without progress, and Settle tells what is left",
    "Catalog": "a schedule calls the same function, and its errors raise an alarm",
}
"""Lambda states whose failure does not end the execution."""
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
"""The same of EMR Serverless: a conflict is an application that is just being stopped."""
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
    ],
)
def test_of_the_modelled_errors_of_a_call_those_that_pass_are_retried(
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


@machine_files
def test_no_name_of_botocore_is_retried_or_caught(file: Path) -> None:
    known = subclasses(errors.HybridRouterError) | {"States.ALL", "States.Timeout", "Sandbox.Timedout"}
    services = ("Lambda.", "Glue.", "EMRServerless.", "StepFunctions.")
    for graph in graphs(read(file)):
        for name, state in graph["States"].items():
            for rule in (*state.get("Retry", []), *state.get("Catch", [])):
                strange = [error for error in rule["ErrorEquals"] if error not in known]
                assert all(error.startswith(services) for error in strange), f"{name}: {strange}"


@machine_files
def test_every_error_of_a_task_is_caught_and_told(file: Path) -> None:
    for graph in graphs(read(file)):
        for name, state in graph["States"].items():
            if state["Type"] not in ("Task", "Map"):
                continue
            assert state["Catch"][-1]["ErrorEquals"] == ["States.ALL"], name
            if state["Resource"].endswith("lambda:invoke") if "Resource" in state else False:
                assert name in GOES_ON or "sns:publish" in resource_after(graph, state["Catch"][-1]["Next"]), name


def test_a_scheduled_verification_that_fails_is_told() -> None:
    machine = read(MACHINES / "verify.asl.json")
    compare = machine["States"]["Compare"]
    assert "sns:publish" in resource_after(machine, compare["Catch"][-1]["Next"])


@machine_files
def test_what_lambda_reports_of_a_process_that_died_is_caught_with_or_without_a_retry(file: Path) -> None:
    # Given: out of memory, out of time (Lambda's and the state's), and a report that Lambda lost
    killed = {"Runtime.ExitError", "Sandbox.Timedout", "States.Timeout", "Lambda.Unknown"}
    for graph in graphs(read(file)):
        for name, state in graph["States"].items():
            if not state.get("Resource", "").endswith("lambda:invoke"):
                continue
            # Then: more memory is not to be had by a repetition, and no rule before the last one ends without a word
            assert killed - retried(state) == {"Runtime.ExitError"}, name
            assert not any(killed & set(rule["ErrorEquals"]) for rule in state["Catch"][:-1]), name


def resource_after(graph: dict[str, Any], name: str) -> str:
    """The resource of the task that follows, also behind a choice."""
    state = graph["States"][name]
    return resource_after(graph, state["Choices"][0]["Next"]) if state["Type"] == "Choice" else state["Resource"]


def test_only_a_wrong_input_is_not_notified_because_a_person_has_just_passed_it() -> None:
    for file in FILES:
        for graph in graphs(read(file)):
            for name, state in graph["States"].items():
                special = [rule["ErrorEquals"] for rule in state.get("Catch", [])[:-1]]
                assert special in ([], [["InvalidInputError"]]), name


def test_80000_children_of_the_map_return_less_than_a_state_may_hold() -> None:
    machine = read(MACHINES / "overnight.asl.json")
    child = machine["States"]["Runs"]["ItemProcessor"]["States"]
    ends = [state for state in child.values() if state.get("End") or state["Type"] == "Succeed"]
    assert [state["Output"] for state in ends] == [{}]
    # The outputs of all children are one array before the Output of the Map applies.
    assert len(json.dumps([state["Output"] for state in ends] * 80_000, separators=(",", ":"))) < MAX_STATE_BYTES
