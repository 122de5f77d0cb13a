"""An alarm on the difference of two metrics in the emulator: raised by it, for one period."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from ministack.services import cloudwatch  # type: ignore[import-untyped]

from local.emulator_patches import metric_math

if TYPE_CHECKING:
    from collections.abc import Callable

PERIOD = 300


def stat(name: str) -> dict[str, Any]:
    return {"Metric": {"Namespace": "N", "MetricName": name, "Dimensions": []}, "Period": PERIOD, "Stat": "Sum"}


@pytest.mark.parametrize(
    ("failed", "notified", "state"), [(0, 0, "OK"), (1, 1, "OK"), (1, 0, "ALARM"), (2, 1, "ALARM"), (0, 1, "OK")]
)
def test_it_is_raised_by_what_one_metric_has_more_for_one_period(
    monkeypatch: pytest.MonkeyPatch, failed: int, notified: int, state: str
) -> None:
    # Given an alarm, and a clock that is moved by hand
    name, expression = "unknown", "failed - FILL(notified, 0)"
    alarm = {"AlarmName": name, "MetricName": expression, "Namespace": metric_math.NAMESPACE, "Threshold": 1.0}
    alarm["StateValue"] = "INSUFFICIENT_DATA"
    # And one whose metrics the emulator does not have
    other = {"AlarmName": "errors", "MetricName": "Errors", "Namespace": "AWS/Lambda", "StateValue": "OK"}
    later: list[tuple[float, Callable[[], object]]] = []
    now = 1000.0
    points = {"failed": failed, "notified": notified}
    for field, value in {
        "_alarms": {name: alarm, "errors": other},
        "_composite_alarms": {},
        "_metrics": {
            ("N", metric, cloudwatch._dims_key({})): [{"Timestamp": now, "Value": 1.0}] * number
            for metric, number in points.items()
        },
        "_evaluate_all_alarms": None,
    }.items():
        monkeypatch.setattr(cloudwatch, field, value)
    monkeypatch.setattr("local.emulator_patches.metric_math.time.time", lambda: now)
    monkeypatch.setattr(metric_math, "start_timer", lambda seconds, work: later.append((seconds, work)))
    metric_math.patch_evaluation({name: {metric: stat(metric) for metric in points}})
    # When
    cloudwatch._evaluate_all_alarms()
    # Then
    assert (alarm["StateValue"], other["StateValue"]) == (state, "OK")
    # And it ends with its period
    if state == "ALARM":
        ((seconds, work),) = later
        now += seconds + 1
        work()
    assert alarm["StateValue"] == "OK"
