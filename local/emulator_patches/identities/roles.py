"""Roles: their trust, rights and access keys; and services that act for a role or for themselves.

Only access keys that this cloud issued are accepted, and a role's keys are issued only to principals that it trusts.
Schedules, event sources and function logs act with a role, alarms as CloudWatch.
"""

import copy
import dataclasses
import os
import threading
import time
from collections.abc import Mapping

from ministack.core import iam_actions, iam_evaluator, lambda_runtime  # type: ignore[import-untyped]
from ministack.services import cloudwatch, eventbridge, iam, lambda_svc, sns, sqs, sts  # type: ignore[import-untyped]

from local.emulator_patches import EmulatorValue, Original, wrap
from local.emulator_patches.identities.encryption_keys import needed
from local.emulator_patches.identities.requests import log_refusal
from local.errors import NotAllowedError
from local.isolation import ACCOUNT, REGION, AccessKey


def check_trust(role_arn: str, service: str, keys: Mapping[str, str]) -> str:
    """Return the role's name if its trust policy lets ``service`` assume it; ``keys``: condition keys in lower case.

    Raises ``NotAllowedError`` if the role does not exist, or does not trust the service.
    """
    name = role_arn.rpartition("/")[2]
    role = iam._roles.get_scoped(ACCOUNT, None, name)
    document = (role or {}).get("AssumeRolePolicyDocument") or {}
    asked = iam_evaluator.EvalContext(
        "", "Service", ACCOUNT, "sts:AssumeRole", role_arn, REGION, service_context=dict(keys)
    )
    if iam_evaluator.evaluate_resource_policy(document, asked, service=service).decision != "Allow":
        raise NotAllowedError(f"{service} is not authorized to assume the role {role_arn}")
    return name


def check_role(role_arn: str, service: str, action: str, resource: str, keys: Mapping[str, str] | None = None) -> None:
    """Check a call that the emulator makes in its own process for ``service`` with a role.

    Raises ``NotAllowedError`` with AWS's sentence if the service may not assume the role, or the role may not do
    ``action`` on ``resource`` or use the resource's KMS key.
    """
    name = check_trust(role_arn, service, keys or {})
    for asked_action, asked_resource, context in ((action, resource, dict(keys or {})), *needed(action, resource)):
        _check_policies(name, service, asked_action, asked_resource, context)


def _check_policies(name: str, service: str, action: str, resource: str, keys: dict[str, str]) -> None:
    principal = f"arn:aws:sts::{ACCOUNT}:assumed-role/{name}/{service.partition('.')[0]}"
    asked = iam_evaluator.EvalContext(principal, "AssumedRole", ACCOUNT, action, resource, REGION, service_context=keys)
    result = iam_evaluator.evaluate(asked, iam_evaluator._gather_role_policies(name, ACCOUNT))
    own = iam_evaluator._resource_policy(action.partition(":")[0], resource)
    if own is not None:
        # A key's policy must also allow what a role's policies allow.
        result = iam_evaluator.combine_resource_policy(result, asked, *own, required=action.startswith("kms:"))
    if result.decision != "Allow":
        explicit = result.decision == "Deny"
        raise NotAllowedError(iam_actions.identity_denial_message(action, principal, resource, explicit))


_sessions: dict[tuple[str, str], AccessKey] = {}
_lock = threading.Lock()


def patch() -> None:
    iam_evaluator.is_root_access_key = sts.is_root_access_key = is_root_access_key
    wrap(iam_evaluator, "resolve_principal", _resolve_principal)
    lambda_runtime.execution_credentials = execution_credentials
    wrap(eventbridge, "_invoke_target", _invoke_target)
    wrap(sqs, "_receive_messages_for_esm", _receive_messages)
    wrap(cloudwatch, "_dispatch_alarm_actions", _dispatch_alarm_actions)
    wrap(lambda_svc, "_emit_lambda_logs", _emit_lambda_logs)


def is_root_access_key(access_key_id: str) -> bool:
    return access_key_id == os.environ["AWS_ACCESS_KEY_ID"]


def _resolve_principal(original: Original, *args: EmulatorValue, **options: EmulatorValue) -> EmulatorValue:
    """The owner of the account may do everything, except what the policy of a resource denies."""
    found = original(*args, **options)
    if not isinstance(found, iam_evaluator.PrincipalInfo) or found.policies is not None:
        return found
    everything = {"Statement": {"Effect": "Allow", "Action": "*", "Resource": "*"}}
    return dataclasses.replace(found, policies=[iam_evaluator.parse_policy_document(everything)])


def execution_credentials(config: Mapping[str, EmulatorValue]) -> dict[str, str]:
    key = session_key(config["Role"], "lambda.amazonaws.com", config["FunctionName"][:64])
    return {"AWS_SESSION_TOKEN": "", **key.environment}


def session_key(role_arn: str, service: str, session: str) -> AccessKey:
    """Return temporary credentials of the role for ``service``; the same for the same session.

    Raises ``NotAllowedError`` if the role does not trust the service.
    """
    name = check_trust(role_arn, service, {"aws:sourceaccount": ACCOUNT})
    with _lock:
        if (role_arn, session) in _sessions:
            return _sessions[role_arn, session]
        key = _sessions[role_arn, session] = AccessKey.random("ASIA")
    sts.register_session(
        key.id,
        {
            "Arn": f"arn:aws:sts::{ACCOUNT}:assumed-role/{name}/{session}",
            "UserId": f"{name}:{session}",
            "SecretAccessKey": key.secret,
            "SessionToken": key.session_token,
        },
    )
    return key


_TARGET_ACTIONS = {"states": "states:StartExecution", "lambda": "lambda:InvokeFunction"}
_POLL_ACTIONS = ("sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:GetQueueAttributes")
"""Rights that a function's role needs for its queue: AWS Lambda Developer Guide, "Using Lambda with Amazon SQS"."""
_REFUSED_POLL_SECONDS = 1


def _invoke_target(
    original: Original, target: EmulatorValue, event: EmulatorValue, rule: EmulatorValue, *more: EmulatorValue
) -> EmulatorValue:
    """A schedule acts with its target's role. A refused one does nothing; AWS tries again and then drops it."""
    # Rules of EventBridge come here too; only a schedule has its own target.
    if "Target" in rule:
        action = _TARGET_ACTIONS[target["Arn"].split(":")[2]]
        keys = {"aws:sourceaccount": ACCOUNT, "aws:sourcearn": rule["Arn"]}
        try:
            check_role(target["RoleArn"], "scheduler.amazonaws.com", action, target["Arn"], keys)
        except NotAllowedError as error:
            log_refusal(rule["Arn"], str(error))
            return None
    return original(target, event, rule, *more)


def _receive_messages(original: Original, url: str, number: int) -> EmulatorValue:
    """A function polls its queue with its own role."""
    queue = sqs._get_q(url)["attributes"]["QueueArn"]
    for mapping in list(lambda_svc._esms.values()):
        if mapping["EventSourceArn"] != queue:
            continue
        record, _ = lambda_svc._get_func_record_for_qualifier(mapping["FunctionName"], None)
        for action in _POLL_ACTIONS:
            try:
                check_role(record["config"]["Role"], "lambda.amazonaws.com", action, queue)
            except NotAllowedError as error:
                log_refusal(f"event source of {mapping['FunctionName']}", str(error))
                time.sleep(_REFUSED_POLL_SECONDS)
                return []
    return original(url, number)


def _dispatch_alarm_actions(original: Original, alarm: EmulatorValue, *change: EmulatorValue) -> None:
    """An alarm publishes as CloudWatch: the topic's own policy has to allow it."""
    allowed = copy.deepcopy(dict(alarm))
    for field in ("AlarmActions", "OKActions", "InsufficientDataActions"):
        for topic in list(allowed.get(field) or []):
            if not sns.topic_policy_allows(topic, "cloudwatch.amazonaws.com", alarm["AlarmArn"], ACCOUNT):
                allowed[field].remove(topic)
                log_refusal(alarm["AlarmArn"], f"sns:Publish on {topic}: its policy does not allow CloudWatch")
    original(allowed, *change)


def _emit_lambda_logs(original: Original, func: EmulatorValue, *log: EmulatorValue, **options: EmulatorValue) -> None:
    """A function writes its log with its own role; without the right its lines are lost, as on AWS."""
    config = func.get("config") or func
    group = (config.get("LoggingConfig") or {}).get("LogGroup") or f"/aws/lambda/{config['FunctionName']}"
    stream = f"arn:aws:logs:{REGION}:{ACCOUNT}:log-group:{group}:log-stream:any"
    try:
        for action in ("logs:CreateLogStream", "logs:PutLogEvents"):
            check_role(config["Role"], "lambda.amazonaws.com", action, stream)
    except NotAllowedError as error:
        log_refusal(f"log of {config['FunctionName']}", str(error))
        return
    original(func, *log, **options)
