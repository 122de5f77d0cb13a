"""The state machines' files: reachable and described states, retries by name, placeholders that the stack fills."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from infra.machines import INDEX_WAIT_SECONDS
from lake import errors
from lake.settings.lanes import HELD_ROUNDS
from router.entry import RAISE_REFUSAL
from tests.unit.infra.conftest import Assembly

MACHINES = Path(__file__).parents[3] / "statemachines"
FILES = sorted(MACHINES.glob("*.asl.json"))
PLACEHOLDER = re.compile(r"\$\{(\w+)\}")
LAMBDA_ERRORS = {
    "Lambda.ServiceException",
    "Lambda.AWSLambdaException",
    "Lambda.SdkClientException",
    "Lambda.TooManyRequestsException",
    "Lambda.ClientExecutionTimeoutException",
    "Lambda.ResourceConflictException",
    "Lambda.ResourceNotReadyException",
    "Lambda.Unknown",
    "Sandbox.Timedout",
    "States.Timeout",
}
GLUE_ERRORS = {
    "Glue.ConcurrentRunsExceededException",
    "Glue.ResourceNumberLimitExceededException",
    "Glue.ThrottlingException",
    "Glue.OperationTimeoutException",
    "Glue.InternalServiceException",
    "Glue.AWSGlueException",
    "Glue.SdkClientException",
}
EMR_ERRORS = {
    "EMRServerless.ConflictException",
    "EMRServerless.ThrottlingException",
    "EMRServerless.InternalServerException",
    "EMRServerless.AWSEMRServerlessException",
    "EMRServerless.SdkClientException",
}
NESTED_ERRORS = {
    "StepFunctions.ExecutionLimitExceededException",
    "StepFunctions.ThrottlingException",
    "StepFunctions.SdkClientException",
}
TELLS = ("sns:publish",)
"""What is tried again whatever the error is: the execution ends with the error that it publishes."""
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
    """(name, state) of all states, also of those inside Map states."""
    for graph in graphs(machine):
        yield from graph["States"].items()


def read(file: Path) -> dict[str, Any]:
    return json.loads(file.read_text(encoding="utf-8"))


@machine_files
def test_every_state_is_reachable_and_leads_somewhere(file: Path) -> None:
    for graph in graphs(read(file)):
        reached, waiting = set(), [graph["StartAt"]]
        while waiting:
            name = waiting.pop()
            if name in reached:
                continue
            reached.add(name)
            state = graph["States"][name]
            branches = [*state.get("Catch", []), *state.get("Choices", [])]
            following = [branch["Next"] for branch in branches]
            following += [state[key] for key in ("Next", "Default") if key in state]
            waiting += following
            ends = state.get("End") is True or state["Type"] in ("Fail", "Succeed")
            assert ends or {"Next", "Default"} & set(state), f"{name} leads nowhere"
        assert reached == set(graph["States"])


@machine_files
def test_the_machine_is_jsonata_described_and_ends_in_time(file: Path) -> None:
    machine = read(file)
    assert machine["QueryLanguage"] == "JSONata"
    assert len(machine["Comment"]) > 40
    assert 0 < machine["TimeoutSeconds"] <= 366 * 86_400
    limits = [state["TimeoutSeconds"] for _, state in states(machine) if state["Type"] == "Task"]
    assert all(0 < limit < machine["TimeoutSeconds"] for limit in limits)


@machine_files
def test_every_task_is_retried_by_name_with_jitter_and_an_end(file: Path) -> None:
    known = LAMBDA_ERRORS | GLUE_ERRORS | EMR_ERRORS | NESTED_ERRORS | subclasses(errors.TransientError)
    for name, state in states(read(file)):
        if state["Type"] != "Task":
            continue
        assert state["Retry"], name
        for retrier in state["Retry"]:
            assert retrier["JitterStrategy"] == "FULL", name
            assert retrier["MaxDelaySeconds"] > 0
            assert 0 < retrier["MaxAttempts"] <= 60
            named = set(retrier["ErrorEquals"])
            assert named <= known or (named == {"States.ALL"} and state["Resource"].endswith(TELLS)), (
                f"{name}: {named - known}"
            )


@machine_files
def test_lambda_calls_retry_every_transient_error_and_no_terminal_one(file: Path) -> None:
    for name, state in states(read(file)):
        if state["Type"] == "Task" and state["Resource"].endswith("lambda:invoke"):
            retried = {error for retrier in state["Retry"] for error in retrier["ErrorEquals"]}
            assert retried == subclasses(errors.TransientError) | LAMBDA_ERRORS, name


@machine_files
def test_every_lambda_call_has_the_retry_of_the_one_source(file: Path) -> None:
    source = json.loads((MACHINES / "lambda_retry.json").read_text(encoding="utf-8"))
    calls = {name: state for name, state in states(read(file)) if state.get("Resource", "").endswith("lambda:invoke")}
    assert calls or file.name == "verify.asl.json"
    for name, state in calls.items():
        assert state["Retry"] == source, f"{name} of {file.name}: copy statemachines/lambda_retry.json into its Retry"


@machine_files
def test_the_first_task_tells_a_person_what_was_wrong_with_the_input(file: Path) -> None:
    machine = read(file)
    first = machine["States"][machine["StartAt"]]
    if first["Type"] == "Wait":
        first = machine["States"][first["Next"]]
    if file.name == "stream_window.asl.json":
        # It ignores its input.
        assert "$states.input" not in json.dumps(first)
        return
    if file.name == "verify.asl.json":
        # The job itself says what was wrong, in its log.
        assert first["Resource"] == "arn:aws:states:::glue:startJobRun.sync"
        return
    # What is wrong is an answer: an error of the function would raise its alarm.
    assert RAISE_REFUSAL not in json.dumps(first["Arguments"])
    assert {"error", "cause"} <= set(first["Assign"])
    refused = machine["States"][first["Next"]]["Choices"][0]
    assert refused["Condition"] == "{% $error != '' %}"
    assert machine["States"][refused["Next"]]["Type"] == "Fail"


@machine_files
def test_placeholders_are_quoted_and_only_values_are_filled_in(file: Path) -> None:
    text = file.read_text(encoding="utf-8")
    # The file is valid JSON before the substitution, so every placeholder is inside a string.
    machine = json.loads(text)
    assert PLACEHOLDER.search(text)
    assert not [key for key in _keys(machine) if PLACEHOLDER.search(key)]
    assert "arn:aws:lambda" not in text


@machine_files
def test_the_stack_fills_in_every_placeholder_and_no_other(file: Path, other_assembly: Assembly) -> None:
    part = file.name.partition(".")[0].title().replace("_", "")
    deployed = other_assembly.one("AWS::StepFunctions::StateMachine", f"Machines{part}")
    text = file.read_text(encoding="utf-8")
    assert deployed["DefinitionString"] == text
    assert set(deployed["DefinitionSubstitutions"]) == set(PLACEHOLDER.findall(text))


def test_numbers_come_from_the_settings(assembly: Assembly) -> None:
    overnight = assembly.one("AWS::StepFunctions::StateMachine", "MachinesOvernight")["DefinitionSubstitutions"]
    assert overnight["IndexWaitSeconds"] == str(INDEX_WAIT_SECONDS)
    assert overnight["HeldRounds"] == str(HELD_ROUNDS)
    assert overnight["HeldWaitSeconds"] == str(assembly.settings.batch.held_wait_seconds)
    window = assembly.one("AWS::StepFunctions::StateMachine", "MachinesStreamWindow")["DefinitionSubstitutions"]
    # One minute of grace, checked every 40 seconds.
    assert (window["WatchSeconds"], window["StopRounds"]) == ("40", "23")


def test_overnight_outlasts_the_longest_run_and_backfill_outlasts_overnight() -> None:
    overnight, backfill = (
        read(next(file for file in FILES if file.name.startswith(name))) for name in ("overnight", "backfill")
    )
    max_run_seconds = 10_080 * 60
    for name in ("RunJob", "RunOnEmr"):
        run = overnight["States"]["Runs"]["ItemProcessor"]["States"][name]
        assert max_run_seconds < run["TimeoutSeconds"] < overnight["TimeoutSeconds"]
    assert overnight["TimeoutSeconds"] < backfill["States"]["Overnight"]["TimeoutSeconds"]


def test_every_run_is_a_child_execution_and_stops_no_other() -> None:
    machine = read(next(file for file in FILES if file.name.startswith("overnight")))
    runs = machine["States"]["Runs"]
    assert runs["ItemProcessor"]["ProcessorConfig"] == {"Mode": "DISTRIBUTED", "ExecutionType": "STANDARD"}
    assert runs["ToleratedFailurePercentage"] == 100
    for name, resource in (("RunJob", "glue:startJobRun.sync"), ("RunOnEmr", "emr-serverless:startJobRun.sync")):
        job = runs["ItemProcessor"]["States"][name]
        assert job["Resource"] == f"arn:aws:states:::{resource}"
        assert job["Catch"][-1]["ErrorEquals"] == ["States.ALL"]


def _keys(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        yield from value
        for item in value.values():
            yield from _keys(item)
    elif isinstance(value, list):
        for item in value:
            yield from _keys(item)
