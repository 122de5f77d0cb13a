"""Step Functions: integrations with job runs, stops and timeouts that end them, JSONata in distributed Maps.

Tasks, the reader of a Map and its children act with the role of the state machine. A state holds 256 KiB. More is an
error that ``States.ALL`` does not match, and only a running machine shows it, because JSONata computes the data.
"""

import contextvars
import json
import threading
import time
from collections.abc import Callable, Mapping
from functools import partial
from types import MappingProxyType
from typing import Any, NamedTuple

from ministack.services import stepfunctions  # type: ignore[import-untyped]

from local.emulator_patches import EmulatorValue, Original, setting, wrap
from local.emulator_patches.identities.requests import log_refusal
from local.emulator_patches.identities.roles import check_role
from local.errors import NotAllowedError
from local.isolation import ACCOUNT, REGION

POLL_SECONDS = 0.1

current_execution: contextvars.ContextVar[Mapping[str, Any] | None] = contextvars.ContextVar("execution", default=None)
_abandoned: contextvars.ContextVar[threading.Event | None] = contextvars.ContextVar("abandoned", default=None)


class Right(NamedTuple):
    """A right that a task needs in the role of its state machine."""

    action: str
    resource: str
    conditions: Mapping[str, str] = MappingProxyType({})
    """Condition keys of the request in addition to those of every task, in lower case."""


Rights = tuple[str, list[Right]]
"""The name of the error of a refused task, and the rights that it needs."""
RIGHTS: dict[str, Callable[[str, dict[str, Any]], Rights]] = {}
"""Integration -> the rights of a task, by its resource and its arguments."""


def patch() -> None:
    wrap(stepfunctions, "_execute_task", _execute_task)
    wrap(stepfunctions, "_invoke_resource_with_timeout", _invoke_with_timeout)
    wrap(stepfunctions, "_invoke_resource", _invoke_resource)
    wrap(stepfunctions, "_read_map_items", _read_map_items)
    wrap(stepfunctions, "_run_distributed_map", _run_distributed_map)
    wrap(stepfunctions, "_run_sub_machine", _run_sub_machine)
    wrap(stepfunctions, "_error_matches", _error_matches)
    for name, subject in (
        ("_apply_jsonata_arguments", "arguments"),
        ("_apply_jsonata_output", "an output"),
        ("_apply_catcher", "an output of Catch"),
    ):
        wrap(stepfunctions, name, partial(_apply_within_size, subject))


def add_integration(
    name: str, run: Callable[[str, dict[str, Any]], dict[str, Any]], rights: Callable[[str, dict[str, Any]], Rights]
) -> None:
    """Add an integration that the emulator lacks, with and without ``.sync``, and the rights that it needs."""
    stepfunctions._SERVICE_DISPATCH[f"arn:aws:states:::{name}"] = run
    RIGHTS[name] = rights


def use_of_rule(name: str) -> list[Right]:
    """Rights that a task needs on the EventBridge rule by which Step Functions learns of its end."""
    arn = f"arn:aws:events:{REGION}:{ACCOUNT}:rule/StepFunctionsGetEventsFor{name}Rule"
    return [Right(f"events:{action}", arn) for action in ("PutTargets", "PutRule", "DescribeRule")]


def wait_for_end(has_ended: Callable[[], bool], stop: Callable[[], object]) -> None:
    """Wait until the run of a task has ended; it is stopped when its state times out or its execution is stopped.

    Raises the emulator's error for a stopped execution.
    """
    while not has_ended():
        abandoned = _abandoned.get()
        if _is_aborted(current_execution.get()) or (abandoned is not None and abandoned.is_set()):
            stop()
        time.sleep(POLL_SECONDS)
    _check_not_stopped(current_execution.get())


def _is_aborted(execution: Mapping[str, Any] | None) -> bool:
    while execution is not None:
        if execution.get("status") == "ABORTED":
            return True
        map_run = stepfunctions._map_runs.get(execution.get("mapRunArn") or "")
        execution = stepfunctions._executions.get(map_run["executionArn"]) if map_run else None
    return False


def _check_not_stopped(execution: Mapping[str, Any] | None) -> None:
    if _is_aborted(execution):
        raise stepfunctions._ExecutionError("States.Aborted", "The execution was stopped.")


def _execute_task(original: Original, *task: EmulatorValue) -> EmulatorValue:
    """No further task starts in an execution that was stopped."""
    _state, _input, execution, _context = task
    _check_not_stopped(execution)
    with setting(current_execution, execution):
        return original(*task)


def _invoke_with_timeout(original: Original, *invocation: EmulatorValue) -> EmulatorValue:
    """A task's TimeoutSeconds ends its job run."""
    abandoned = threading.Event()
    try:
        with setting(_abandoned, abandoned):
            return original(*invocation)
    except stepfunctions._ExecutionError as error:
        if error.error == "States.Timeout":
            abandoned.set()
        raise


_KNOWN = {"Type", "Comment", "Label", "ItemReader", "Items", "ItemProcessor", "Output", "Retry", "Catch", "Next", "End"}
_LIMITS_OF_MAP = {"MaxConcurrency", "ToleratedFailurePercentage"}


def _run_distributed_map(original: Original, *given: EmulatorValue) -> EmulatorValue:
    """Evaluates JSONata in the fields that the product's distributed Map has; any other field is an error."""
    state, raw_input, _effective, iterator, execution, context = given
    machine = _machine(execution["stateMachineArn"])
    _check(machine, "States.Permissions", [Right("states:StartExecution", machine)])
    if unsupported := state.keys() - _KNOWN - _LIMITS_OF_MAP:
        raise stepfunctions._ExecutionError(
            "States.Runtime", f"The local cloud does not support {' and '.join(sorted(unsupported))}."
        )

    def evaluated(name: str) -> EmulatorValue:
        return stepfunctions._apply_jsonata_template(state[name], raw_input, context)

    if "ItemReader" in state:
        items = stepfunctions._read_map_items(evaluated("ItemReader"), raw_input, context)
    else:
        items = evaluated("Items")
    inner = {key: value for key, value in state.items() if key not in {"ItemReader", "Items", "Output"}}
    inner |= {key: evaluated(key) for key in _LIMITS_OF_MAP if key in state}
    # On AWS, a child execution does not see the variables of its parent.
    results, following = original(inner, raw_input, items, iterator, execution, {**context, "variables": {}})
    output = stepfunctions._apply_jsonata_output(state, raw_input, context, result=results, default=results)
    return output, following


def _invoke_resource(original: Original, resource: str, data: dict[str, Any]) -> EmulatorValue:
    execution = current_execution.get()
    if execution is not None:
        _check(_machine(execution["stateMachineArn"]), *rights_of(resource, data))
    return original(resource, data)


def _read_map_items(original: Original, *given: EmulatorValue) -> EmulatorValue:
    reader, _effective, context = given
    asked = Right("s3:GetObject", "arn:aws:s3:::{Bucket}/{Key}".format(**reader["Arguments"]))
    _check(_machine(context["StateMachine"]["Id"]), "States.ItemReaderFailed", [asked])
    return original(*given)


def rights_of(resource: str, data: dict[str, Any]) -> Rights:
    """Return the rights that a task needs; ``local.engines`` has the rights for job runs.

    Source: AWS Step Functions Developer Guide, "Integrating services", IAM policies of each integration.
    """
    for integration, rights in RIGHTS.items():
        if integration in resource:
            return rights(resource, data)
    if "lambda:invoke" in resource:
        name = data["FunctionName"]
        arn = name if name.startswith("arn:") else f"arn:aws:lambda:{REGION}:{ACCOUNT}:function:{name}"
        return "Lambda.AWSLambdaException", [Right("lambda:InvokeFunction", arn)]
    if "sns:publish" in resource:
        return "Sns.AuthorizationErrorException", [Right("sns:Publish", data["TopicArn"])]
    if "states:startExecution" in resource:
        machine = data["StateMachineArn"]
        asked = [Right("states:StartExecution", machine)]
        if ".sync" in resource:
            execution = f"{machine.replace(':stateMachine:', ':execution:')}:any"
            asked += [Right(f"states:{name}", execution) for name in ("DescribeExecution", "StopExecution")]
            asked += use_of_rule("StepFunctionsExecution")
        return "StepFunctions.AccessDeniedException", asked
    return "States.Permissions", []


def _machine(arn: str) -> str:
    """A Map's child execution belongs to "<state machine>/<label>"."""
    return arn.partition("/")[0]


def _check(machine: str, error: str, asked: list[Right]) -> None:
    role = stepfunctions._state_machines[machine]["roleArn"]
    keys = {"aws:sourceaccount": ACCOUNT, "aws:sourcearn": machine}
    for right in asked:
        try:
            check_role(role, "states.amazonaws.com", right.action, right.resource, {**keys, **right.conditions})
        except NotAllowedError as refusal:
            log_refusal(machine, str(refusal))
            raise stepfunctions._ExecutionError(error, str(refusal)) from None


MAX_STATE_BYTES = 262_144
"""Bytes of UTF-8 of a state's input or output, a task's result, and a Map's results together.

Source: https://docs.aws.amazon.com/step-functions/latest/dg/service-quotas.html
"""
DATA_LIMIT_EXCEEDED = "States.DataLimitExceeded"
UNCATCHABLE = frozenset({DATA_LIMIT_EXCEEDED, "States.Runtime"})
"""Errors that ``States.ALL`` does not match.

Source: https://docs.aws.amazon.com/step-functions/latest/dg/concepts-error-handling.html
"""


def _run_sub_machine(original: Original, *given: EmulatorValue) -> EmulatorValue:
    states, start, data, execution, context = given
    _check_size(data, "an input")
    if "mapRunArn" in execution:
        # A child of a distributed Map has its own id.
        context = {**context, "Execution": {**context["Execution"], "Id": execution["executionArn"]}}
    return original(states, start, data, execution, context)


def _apply_within_size(
    subject: str, original: Original, *args: EmulatorValue, **options: EmulatorValue
) -> EmulatorValue:
    """The size of a task's or Map's result counts before its Output makes it smaller."""
    _check_size(options.get("result"), "a result")
    value = original(*args, **options)
    _check_size(value, subject)
    return value


def _check_size(value: EmulatorValue, subject: str) -> None:
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    if len(text.encode("utf-8", "surrogatepass")) > MAX_STATE_BYTES:
        raise stepfunctions._ExecutionError(
            DATA_LIMIT_EXCEEDED,
            f"The state/task has {subject} with a size exceeding the maximum number of bytes service limit.",
        )


def _error_matches(original: Original, names: list[str], error: str) -> bool:
    """Whether a Retry or Catch for ``names`` matches ``error``: wildcards do not match ``UNCATCHABLE``."""
    if error in UNCATCHABLE:
        return error == DATA_LIMIT_EXCEEDED and error in names
    return bool(original(names, error))
