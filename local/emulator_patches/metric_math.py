"""CloudWatch: an alarm on a metric math expression; one on a difference of two metrics has its state here, too.

No other alarm is evaluated: the emulator has few of their metrics, and would compare each with the values of all
dimensions of its metric.

Sources: Amazon CloudWatch User Guide, "Using math expressions" (a value that is missing counts as 0) and "Configuring
how alarms treat missing data".
"""

from __future__ import annotations

import re
import time
from typing import TYPE_CHECKING, Any

from ministack.services import cloudwatch  # type: ignore[import-untyped]
from ministack.services.cloudformation import provisioners  # type: ignore[import-untyped]

from local.emulator_patches.composite_alarms import start_timer

if TYPE_CHECKING:
    from collections.abc import Mapping

    from local.emulator_patches import EmulatorValue

NAMESPACE = "MetricMath"
"""No metric is written to it: an alarm is stored with its expression in the place of the metric's name."""
_DIFFERENCE = re.compile(r"(\w+) - FILL\((\w+), 0\)")


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
        if given:
            (expression,) = [item["Expression"] for item in given if "Expression" in item]
            metrics[name] = {item["Id"]: item["MetricStat"] for item in given if "MetricStat" in item}
            stored = {"MetricName": expression, "Namespace": NAMESPACE}
            properties = {key: value for key, value in properties.items() if key != "Metrics"} | stored
        return record(name, properties)

    provisioners._cw_metric_alarm_record = metric_alarm_record


def patch_evaluation(metrics: Mapping[str, Mapping[str, Any]]) -> None:
    """Evaluate alarms on a difference; ``metrics``: the metrics of an alarm by the ids in its expression."""

    def evaluate_all() -> None:
        for alarm in list(cloudwatch._alarms.values()):
            terms = _DIFFERENCE.fullmatch(alarm["MetricName"]) if alarm["Namespace"] == NAMESPACE else None
            if terms:
                stats = [metrics[alarm["AlarmName"]][term] for term in terms.groups()]
                _set_state(alarm, _sum_of(stats[0]) - _sum_of(stats[1]))
                if alarm["StateValue"] == "ALARM":
                    # Until what has raised it is out of its period.
                    start_timer(int(stats[0]["Period"]), evaluate_all)

    cloudwatch._evaluate_all_alarms = evaluate_all


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
