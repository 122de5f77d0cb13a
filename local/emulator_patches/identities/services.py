"""Services that act for a role or for themselves: schedules, event sources, alarms, function logs."""

import copy
import time

from ministack.services import cloudwatch, eventbridge, lambda_svc, sns, sqs  # type: ignore[import-untyped]

from local.emulator_patches import EmulatorValue, Original, wrap
from local.emulator_patches.identities.requests import log_refusal
from local.emulator_patches.identities.roles import check_role
from local.errors import NotAllowedError
from local.isolation import ACCOUNT, REGION

_TARGET_ACTIONS = {"states": "states:StartExecution", "lambda": "lambda:InvokeFunction"}
_POLL_ACTIONS = ("sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:GetQueueAttributes")
"""What a function's role needs for its queue: AWS Lambda Developer Guide, "Using Lambda with Amazon SQS"."""
_REFUSED_POLL_SECONDS = 1


def patch() -> None:
    wrap(eventbridge, "_invoke_target", _invoke_target)
    wrap(sqs, "_receive_messages_for_esm", _receive_messages)
    wrap(cloudwatch, "_dispatch_alarm_actions", _dispatch_alarm_actions)
    wrap(lambda_svc, "_emit_lambda_logs", _emit_lambda_logs)


def _invoke_target(
    original: Original, target: EmulatorValue, event: EmulatorValue, rule: EmulatorValue, *more: EmulatorValue
) -> EmulatorValue:
    """A schedule acts with its target's role. A refused one does nothing; AWS tries again and then drops it."""
    # Rules of EventBridge come here too; only a schedule has a target of its own.
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
