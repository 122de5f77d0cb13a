"""CloudWatch: an alarm on a metric math expression is stored with its expression, and never has a value here."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ministack.services.cloudformation import provisioners  # type: ignore[import-untyped]

if TYPE_CHECKING:
    from local.emulator_patches import EmulatorValue

NAMESPACE = "MetricMath"
"""No metric is written to it."""


def patch() -> None:
    """Apply the patch of this file."""
    record = provisioners._cw_metric_alarm_record

    def metric_alarm_record(name: str, properties: EmulatorValue) -> EmulatorValue:
        metrics = properties.get("Metrics")
        if metrics:
            (expression,) = [item["Expression"] for item in metrics if "Expression" in item]
            stored = {"MetricName": expression, "Namespace": NAMESPACE}
            properties = {key: value for key, value in properties.items() if key != "Metrics"} | stored
        return record(name, properties)

    provisioners._cw_metric_alarm_record = metric_alarm_record
