"""What AWS reports of a failed execution: its description to its parent, and a message by the alarm that counts it.

No other alarm is evaluated, and each keeps the state INSUFFICIENT_DATA: the emulator has few of their metrics.

Sources: AWS Step Functions Developer Guide, "Monitoring Step Functions metrics using Amazon CloudWatch" and "Start a
new AWS Step Functions state machine from a running execution".
"""

from __future__ import annotations

import contextvars
import json
import threading
import time

from ministack.services import cloudwatch, stepfunctions  # type: ignore[import-untyped]
from ministack.services.cloudformation import provisioners  # type: ignore[import-untyped]

from local.emulator_patches import EmulatorValue

_periods: dict[str, dict[str, int]] = {}
"""Alarm on failed executions -> seconds after which a failure of each of its state machines is over, by ARN."""


def patch() -> None:
    """Apply the patches of this file."""
    record, fail = provisioners._cw_metric_alarm_record, stepfunctions._fail_execution

    def metric_alarm_record(name: str, properties: EmulatorValue) -> EmulatorValue:
        """Of an expression, the emulator keeps neither the text nor the metrics."""
        given = properties.get("Metrics")
        if not given:
            return record(name, properties)
        expression = next(item["Expression"] for item in given if "Expression" in item)
        stored = {"MetricName": expression, "Namespace": "Expression"}
        made = record(name, {key: value for key, value in properties.items() if key != "Metrics"} | stored)
        stats = [item["MetricStat"] for item in given if "MetricStat" in item]
        _periods[name] = {
            stat["Metric"]["Dimensions"][0]["Value"]: int(stat["Period"])
            for stat in stats
            if stat["Metric"]["MetricName"] == "ExecutionsFailed"
        }
        if _periods[name]:
            made["StateValue"] = "OK"
        return made

    def fail_execution(execution: EmulatorValue, error: str, cause: str) -> None:
        # Before the status: a test that waits for the end of an execution finds the alarm's message as well.
        if execution["status"] != "ABORTED":
            _raise_alarms(execution["stateMachineArn"])
        fail(execution, error, cause)

    def nested_failure(description: EmulatorValue) -> tuple[str, str]:
        fields = {f"{name[0].upper()}{name[1:]}": value for name, value in description.items()}
        return "States.TaskFailed", json.dumps(fields, default=str)

    provisioners._cw_metric_alarm_record = metric_alarm_record
    stepfunctions._fail_execution = fail_execution
    stepfunctions._nested_execution_failure = nested_failure
    cloudwatch._evaluate_all_alarms = lambda: None


def _raise_alarms(machine: str) -> None:
    for alarm in list(cloudwatch._alarms.values()):
        seconds = _periods.get(alarm["AlarmName"], {}).get(machine)
        if seconds is not None:
            _set_state(alarm, "ALARM")
            # With the account and region of this request.
            arguments = (_set_state, alarm, "OK")
            timer = threading.Timer(seconds, contextvars.copy_context().run, arguments)
            timer.daemon = True
            timer.start()


def _set_state(alarm: EmulatorValue, new: str) -> None:
    old = alarm["StateValue"]
    if old == new:
        return
    reason = f"Threshold Crossed: {alarm['MetricName']}"
    alarm.update({"StateValue": new, "StateReason": reason, "StateUpdatedTimestamp": int(time.time())})
    cloudwatch._record_history(alarm["AlarmName"], old, new, reason)
    # By its name in the module: who may publish is decided when it is done.
    cloudwatch._dispatch_alarm_actions(alarm, old, new, reason)
