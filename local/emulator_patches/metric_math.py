"""CloudWatch: an alarm on a metric math expression; the alarm on failed executions is evaluated, too.

No other alarm is evaluated, and each keeps the state INSUFFICIENT_DATA: the emulator has few of their metrics, and
would compare each with the values of all dimensions of its metric.

Source: Amazon CloudWatch User Guide, "Using math expressions".
"""

from __future__ import annotations

import contextvars
import re
import threading
import time
from typing import TYPE_CHECKING, Any

from ministack.services import cloudwatch  # type: ignore[import-untyped]
from ministack.services.cloudformation import provisioners  # type: ignore[import-untyped]

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from local.emulator_patches import EmulatorValue

NAMESPACE = "MetricMath"
"""No metric is written to it: an alarm is stored with its expression instead of the metric's name."""
COUNTED = frozenset({"AWS/States"})
"""Namespaces whose metrics the emulator has (``failed_executions``)."""
_TERM = r"FILL\(\w+, 0\)"
_SUM = re.compile(rf"{_TERM}(?: \+ {_TERM})*")


def patch() -> None:
    """Apply the patches of this file."""
    metrics: dict[str, dict[str, Any]] = {}
    _patch_deployment(metrics)
    patch_evaluation(metrics)


def _patch_deployment(metrics: dict[str, dict[str, Any]]) -> None:
    """Keep the metrics of each expression in ``metrics``, by the alarm's name and their ids."""
    record = provisioners._cw_metric_alarm_record

    def metric_alarm_record(name: str, properties: EmulatorValue) -> EmulatorValue:
        given = properties.get("Metrics")
        if not given:
            return record(name, properties)
        (expression,) = [item["Expression"] for item in given if "Expression" in item]
        metrics[name] = {item["Id"]: item["MetricStat"] for item in given if "MetricStat" in item}
        stored = {"MetricName": expression, "Namespace": NAMESPACE}
        made = record(name, {key: value for key, value in properties.items() if key != "Metrics"} | stored)
        if is_evaluated(expression, metrics[name]):
            made["StateValue"] = "OK"
        return made

    provisioners._cw_metric_alarm_record = metric_alarm_record


def patch_evaluation(metrics: Mapping[str, Mapping[str, Any]]) -> None:
    """Evaluate alarms on a sum of counts; ``metrics``: the metrics of an alarm by the ids in its expression."""

    def evaluate_all() -> None:
        for alarm in list(cloudwatch._alarms.values()):
            of_alarm = metrics.get(alarm["AlarmName"], {})
            if alarm["Namespace"] == NAMESPACE and is_evaluated(alarm["MetricName"], of_alarm):
                _set_state(alarm, sum(map(_sum_of, of_alarm.values())))
                if alarm["StateValue"] == "ALARM":
                    # Until what has raised it is out of its period.
                    start_timer(max(int(stat["Period"]) for stat in of_alarm.values()), evaluate_all)

    cloudwatch._evaluate_all_alarms = evaluate_all


def is_evaluated(expression: str, metrics: Mapping[str, Mapping[str, Any]]) -> bool:
    """Whether the expression is the sum of metrics that the emulator has."""
    return bool(_SUM.fullmatch(expression)) and {stat["Metric"]["Namespace"] for stat in metrics.values()} <= COUNTED


def start_timer(seconds: float, work: Callable[[], object]) -> None:
    """Call ``work`` after ``seconds``, with the account and region of this request."""
    timer = threading.Timer(seconds, contextvars.copy_context().run, [work])
    timer.daemon = True
    timer.start()


def _sum_of(stat: Mapping[str, Any]) -> float:
    """The sum of a metric in the period that ends now; 0 without data."""
    metric = stat["Metric"]
    dimensions = {item["Name"]: item["Value"] for item in metric["Dimensions"]}
    key = (metric["Namespace"], metric["MetricName"], cloudwatch._dims_key(dimensions))
    since = time.time() - int(stat["Period"])
    return float(sum(point["Value"] for point in cloudwatch._metrics.get(key, []) if point["Timestamp"] >= since))


def _set_state(alarm: EmulatorValue, value: float) -> None:
    old, new = alarm["StateValue"], "ALARM" if value >= alarm["Threshold"] else "OK"
    if old == new:
        return
    reason = f"Threshold Crossed: {alarm['MetricName']} is {value:g}"
    alarm.update({"StateValue": new, "StateReason": reason, "StateUpdatedTimestamp": int(time.time())})
    cloudwatch._record_history(alarm["AlarmName"], old, new, reason)
    # By their names in the module: who may publish is decided when it is done.
    cloudwatch._dispatch_alarm_actions(alarm, old, new, reason)
    cloudwatch._evaluate_parent_alarms(alarm)
