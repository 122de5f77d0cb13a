"""Alarms, and AWS's report of a failed execution to its parent.

An alarm is evaluated if a single value can raise it, of a metric of functions, executions and queues, or of a metric
that functions log. An alarm on silence, on several periods, on lines of a job's log, or with an IF keeps the state
INSUFFICIENT_DATA.

Sources: AWS Step Functions Developer Guide, "Monitoring Step Functions metrics using Amazon CloudWatch" and "Start a
new AWS Step Functions state machine from a running execution"; Amazon SQS Developer Guide, "Available CloudWatch
metrics for Amazon SQS"; Amazon CloudWatch User Guide, "Specification: Embedded metric format".
"""

import json
import math
import threading
import time
from collections.abc import Callable

from ministack.core.responses import set_request_account_id, set_request_region  # type: ignore[import-untyped]
from ministack.services import cloudwatch, lambda_svc, sqs, stepfunctions  # type: ignore[import-untyped]
from ministack.services.cloudformation import provisioners  # type: ignore[import-untyped]

from local.emulator_patches import EmulatorValue, Original, wrap
from local.isolation import ACCOUNT, REGION

_WATCH_SECONDS = 1
_OF_QUEUES: dict[str, Callable[[EmulatorValue], float]] = {
    "ApproximateNumberOfMessagesVisible": len,
    "ApproximateAgeOfOldestMessage": lambda messages: max(
        (time.time() - item["sent_at"] for item in messages), default=0
    ),
}

_periods: dict[str, dict[tuple[str, ...], int]] = {}
"""Alarm -> seconds for which a value of each metric counts, by namespace, name and values of dimensions."""
_ends: dict[str, float] = {}
"""Alarm -> time until which its last bad value counts, on the monotonic clock."""


def patch() -> None:
    wrap(provisioners, "_cw_metric_alarm_record", _metric_alarm_record)
    wrap(lambda_svc, "_emit_lambda_logs", _emit_lambda_logs)
    wrap(stepfunctions, "_fail_execution", _fail_execution)
    stepfunctions._nested_execution_failure = _nested_failure
    cloudwatch._evaluate_all_alarms = lambda: None
    threading.Thread(target=_watch, daemon=True).start()


def _metric_alarm_record(original: Original, name: str, properties: EmulatorValue) -> EmulatorValue:
    """The emulator keeps neither the text of an expression nor its metrics."""
    given = properties.get("Metrics")
    stored, metrics = dict(properties), [properties]
    if given:
        expression = next(item["Expression"] for item in given if "Expression" in item)
        stats = [item["MetricStat"] for item in given if "MetricStat" in item]
        metrics = [{**stat["Metric"], "Period": stat["Period"]} for stat in stats]
        stored |= {"MetricName": expression, "Namespace": "Expression"}
        del stored["Metrics"]
    made = original(name, stored)
    if (
        int(made["EvaluationPeriods"]) == 1
        and made["ComparisonOperator"] == "GreaterThanOrEqualToThreshold"
        and not made["MetricName"].startswith("IF(")
        and all(metric.get("Dimensions") for metric in metrics)
    ):
        _periods[name] = {_key(metric): int(metric["Period"]) for metric in metrics}
        made["StateValue"] = "OK" if made["StateValue"] == "INSUFFICIENT_DATA" else made["StateValue"]
    return made


def _emit_lambda_logs(original: Original, *log: EmulatorValue, **options: EmulatorValue) -> None:
    original(*log, **options)
    func, _request_id, log_text, error, _milliseconds = log
    if error:
        _evaluate(("AWS/Lambda", "Errors", (func.get("config") or func)["FunctionName"]), 1)
    for line in (log_text or "").splitlines():
        if '"_aws"' in line:
            _evaluate_embedded(json.loads(line[line.index("{") :]))


def _fail_execution(original: Original, execution: EmulatorValue, error: str, cause: str) -> None:
    # This comes before the status, so a test that waits for the end of an execution finds the alarm's message.
    if execution["status"] != "ABORTED":
        _evaluate(("AWS/States", "ExecutionsFailed", execution["stateMachineArn"]), 1)
    original(execution, error, cause)


def _nested_failure(description: EmulatorValue) -> tuple[str, str]:
    fields = {f"{name[0].upper()}{name[1:]}": value for name, value in description.items()}
    return "States.TaskFailed", json.dumps(fields, default=str)


def _key(metric: EmulatorValue) -> tuple[str, ...]:
    return metric["Namespace"], metric["MetricName"], *(item["Value"] for item in metric["Dimensions"])


def _watch() -> None:
    """Evaluate the metrics of queues, which nothing reports, and end alarms whose last bad value no longer counts."""
    set_request_account_id(ACCOUNT)
    set_request_region(REGION)
    while True:
        time.sleep(_WATCH_SECONDS)
        for queue in list(sqs._queues.values()):
            for metric, value in _OF_QUEUES.items():
                _evaluate(("AWS/SQS", metric, queue["name"]), value(list(queue["messages"])))
        for alarm in list(cloudwatch._alarms.values()):
            if _ends.get(alarm["AlarmName"], math.inf) <= time.monotonic():
                del _ends[alarm["AlarmName"]]
                _set_state(alarm, "OK")


def _evaluate_embedded(line: EmulatorValue) -> None:
    """Evaluate the metrics that a function has logged."""
    for group in line["_aws"]["CloudWatchMetrics"]:
        dimensions = [line[name] for name in group["Dimensions"][0]]
        for metric in group["Metrics"]:
            for value in line[metric["Name"]]:
                _evaluate((group["Namespace"], metric["Name"], *dimensions), value)


def _evaluate(key: tuple[str, ...], value: float) -> None:
    for alarm in list(cloudwatch._alarms.values()):
        seconds = _periods.get(alarm["AlarmName"], {}).get(key)
        if seconds is not None and value >= float(alarm["Threshold"]):
            _ends[alarm["AlarmName"]] = time.monotonic() + seconds
            _set_state(alarm, "ALARM")


def _set_state(alarm: EmulatorValue, new: str) -> None:
    old = alarm["StateValue"]
    if old == new:
        return
    reason = f"Threshold Crossed: {alarm['MetricName']}"
    alarm.update({"StateValue": new, "StateReason": reason, "StateUpdatedTimestamp": int(time.time())})
    cloudwatch._record_history(alarm["AlarmName"], old, new, reason)
    # Called by its name in the module: the right to publish is checked when it is done.
    cloudwatch._dispatch_alarm_actions(alarm, old, new, reason)
