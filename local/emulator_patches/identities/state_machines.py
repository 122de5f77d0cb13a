"""State machines: tasks, the reader of a Map and its children act with the role of the state machine."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ministack.services import stepfunctions  # type: ignore[import-untyped]

from local.emulator_patches import state_machines
from local.emulator_patches.identities.requests import log_refusal
from local.emulator_patches.identities.roles import check_role
from local.errors import NotAllowedError
from local.isolation import ACCOUNT, REGION

if TYPE_CHECKING:
    from collections.abc import Mapping

    from local.emulator_patches import EmulatorValue

_SYNC_RULE = f"arn:aws:events:{REGION}:{ACCOUNT}:rule/StepFunctionsGetEventsForStepFunctionsExecutionRule"

_EMR_RULE = f"arn:aws:events:{REGION}:{ACCOUNT}:rule/StepFunctionsGetEventsForEMRServerlessJobRule"
_RULE_ACTIONS = ("PutTargets", "PutRule", "DescribeRule")
_ONE_ACTION = {
    "sns:publish": ("Sns.AuthorizationErrorException", "sns:Publish", "TopicArn"),
}
"""Integration -> the error's name, the action, and the argument that is its resource."""
_PASSED_TO = {"iam:passedtoservice": "emr-serverless.amazonaws.com"}
"""The condition key of iam:PassRole; no other task passes a role."""


def patch() -> None:
    """Apply the patches of this file, after those of ``local.emulator_patches.state_machines``."""
    invoke = stepfunctions._invoke_resource
    read = stepfunctions._read_map_items
    distribute = stepfunctions._run_distributed_map

    def invoke_resource(resource: str, data: dict[str, Any]) -> EmulatorValue:
        execution = state_machines.current_execution.get()
        if execution is not None:
            error, asked = rights_of(resource, data)
            _check(execution["stateMachineArn"], error, asked)
        return invoke(resource, data)

    def read_map_items(reader: EmulatorValue, effective: EmulatorValue, context: EmulatorValue) -> EmulatorValue:
        given = reader.get("Arguments") or reader.get("Parameters") or {}
        asked = ("s3:GetObject", f"arn:aws:s3:::{given.get('Bucket')}/{given.get('Key')}")
        if reader["Resource"].endswith("listObjectsV2"):
            asked = ("s3:ListBucket", f"arn:aws:s3:::{given.get('Bucket')}")
        _check(context["StateMachine"]["Id"], "States.ItemReaderFailed", [asked])
        return read(reader, effective, context)

    def run_distributed_map(
        state: EmulatorValue,
        raw_input: EmulatorValue,
        effective: EmulatorValue,
        iterator: EmulatorValue,
        execution: EmulatorValue,
        context: EmulatorValue,
    ) -> EmulatorValue:
        machine = _machine(execution["stateMachineArn"])
        _check(machine, "States.Permissions", [("states:StartExecution", machine)])
        return distribute(state, raw_input, effective, iterator, execution, context)

    stepfunctions._invoke_resource = invoke_resource
    stepfunctions._read_map_items = read_map_items
    stepfunctions._run_distributed_map = run_distributed_map


def rights_of(resource: str, data: dict[str, Any]) -> tuple[str, list[tuple[str, str]]]:
    """The name of a refused task's error, and the actions and resources that it needs.

    Source: AWS Step Functions Developer Guide, "Integrating services", IAM policies of each integration.
    """
    if "lambda:invoke" in resource:
        name = data["FunctionName"]
        arn = name if name.startswith("arn:") else f"arn:aws:lambda:{REGION}:{ACCOUNT}:function:{name}"
        return "Lambda.AWSLambdaException", [("lambda:InvokeFunction", arn)]
    if "glue:startJobRun" in resource:
        arn = f"arn:aws:glue:{REGION}:{ACCOUNT}:job/{data['JobName']}"
        watched = ("GetJobRun", "GetJobRuns", "BatchStopJobRun") if resource.endswith(".sync") else ()
        return "Glue.AccessDeniedException", [(f"glue:{name}", arn) for name in ("StartJobRun", *watched)]
    if "emr-serverless:startJobRun" in resource:
        arn = f"arn:aws:emr-serverless:{REGION}:{ACCOUNT}:/applications/{data['ApplicationId']}"
        asked = [("emr-serverless:StartJobRun", arn), ("iam:PassRole", data["ExecutionRoleArn"])]
        if resource.endswith(".sync"):
            asked += [(f"emr-serverless:{name}", f"{arn}/jobruns/any") for name in ("GetJobRun", "CancelJobRun")]
            asked += [(f"events:{name}", _EMR_RULE) for name in _RULE_ACTIONS]
        return "EMRServerless.AccessDeniedException", asked
    for integration, (error, action, field) in _ONE_ACTION.items():
        if integration in resource:
            return error, [(action, data[field])]
    if "states:startExecution" in resource:
        machine = data["StateMachineArn"]
        asked = [("states:StartExecution", machine)]
        if ".sync" in resource:
            execution = f"{machine.replace(':stateMachine:', ':execution:')}:any"
            asked += [(f"states:{name}", execution) for name in ("DescribeExecution", "StopExecution")]
            asked += [(f"events:{name}", _SYNC_RULE) for name in _RULE_ACTIONS]
        return "StepFunctions.AccessDeniedException", asked
    return "States.Permissions", []


def _machine(arn: str) -> str:
    """A Map's child execution belongs to "<state machine>/<label>"."""
    return arn.partition("/")[0]


def _check(machine_arn: str, error: str, asked: list[tuple[str, str]], given: Mapping[str, str] | None = None) -> None:
    machine = _machine(machine_arn)
    role = stepfunctions._state_machines[machine]["roleArn"]
    keys = {**(given or {}), "aws:sourceaccount": ACCOUNT, "aws:sourcearn": machine}
    for action, resource in asked:
        try:
            passed = _PASSED_TO if action == "iam:PassRole" else {}
            check_role(role, "states.amazonaws.com", action, resource, {**keys, **passed})
        except NotAllowedError as refusal:
            log_refusal(machine, str(refusal))
            raise stepfunctions._ExecutionError(error, str(refusal)) from None
