"""State machines: tasks, the reader of a Map and its children act with the role of the state machine."""

from typing import Any

from ministack.services import stepfunctions  # type: ignore[import-untyped]

from local.emulator_patches import EmulatorValue, Original, state_machines, wrap
from local.emulator_patches.identities.requests import log_refusal
from local.emulator_patches.identities.roles import check_role
from local.emulator_patches.state_machines import Right, Rights
from local.errors import NotAllowedError
from local.isolation import ACCOUNT, REGION

_SYNC_RULE = f"arn:aws:events:{REGION}:{ACCOUNT}:rule/StepFunctionsGetEventsForStepFunctionsExecutionRule"


def patch() -> None:
    """Apply the patches of this file, after those of ``local.emulator_patches.state_machines``."""
    wrap(stepfunctions, "_invoke_resource", _invoke_resource)
    wrap(stepfunctions, "_read_map_items", _read_map_items)
    wrap(stepfunctions, "_run_distributed_map", _run_distributed_map)


def _invoke_resource(original: Original, resource: str, data: dict[str, Any]) -> EmulatorValue:
    execution = state_machines.current_execution.get()
    if execution is not None:
        error, asked = rights_of(resource, data)
        _check(execution["stateMachineArn"], error, asked)
    return original(resource, data)


def _read_map_items(
    original: Original, reader: EmulatorValue, effective: EmulatorValue, context: EmulatorValue
) -> EmulatorValue:
    given = reader["Arguments"]
    asked = Right("s3:GetObject", f"arn:aws:s3:::{given['Bucket']}/{given['Key']}")
    _check(context["StateMachine"]["Id"], "States.ItemReaderFailed", [asked])
    return original(reader, effective, context)


def _run_distributed_map(original: Original, *given: EmulatorValue) -> EmulatorValue:
    _state, _input, _effective, _iterator, execution, _context = given
    machine = _machine(execution["stateMachineArn"])
    _check(machine, "States.Permissions", [Right("states:StartExecution", machine)])
    return original(*given)


def rights_of(resource: str, data: dict[str, Any]) -> Rights:
    """What a task needs; those of job runs are in ``local.engines``.

    Source: AWS Step Functions Developer Guide, "Integrating services", IAM policies of each integration.
    """
    for integration, rights in state_machines.RIGHTS.items():
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
            asked += state_machines.use_of_rule(_SYNC_RULE)
        return "StepFunctions.AccessDeniedException", asked
    return "States.Permissions", []


def _machine(arn: str) -> str:
    """A Map's child execution belongs to "<state machine>/<label>"."""
    return arn.partition("/")[0]


def _check(machine_arn: str, error: str, asked: list[Right]) -> None:
    machine = _machine(machine_arn)
    role = stepfunctions._state_machines[machine]["roleArn"]
    keys = {"aws:sourceaccount": ACCOUNT, "aws:sourcearn": machine}
    for right in asked:
        try:
            check_role(role, "states.amazonaws.com", right.action, right.resource, {**keys, **right.conditions})
        except NotAllowedError as refusal:
            log_refusal(machine, str(refusal))
            raise stepfunctions._ExecutionError(error, str(refusal)) from None
