"""The alarm on failed executions in the emulator: raised by it, for one period."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from ministack.services import cloudwatch  # type: ignore[import-untyped]

from local.emulator_patches import metric_math

if TYPE_CHECKING:
    from collections.abc import Callable

PERIOD = 300
EXPRESSION = "FILL(m0, 0) + FILL(m1, 0)"


def stat(name: str, namespace: str) -> dict[str, Any]:
    return {"Metric": {"Namespace": namespace, "MetricName": name, "Dimensions": []}, "Period": PERIOD, "Stat": "Sum"}


@pytest.mark.parametrize(("failed", "timed_out", "state"), [(0, 0, "OK"), (1, 0, "ALARM"), (0, 1, "ALARM")])
def test_it_is_raised_by_any_of_its_counts_for_one_period(
    monkeypatch: pytest.MonkeyPatch, failed: int, timed_out: int, state: str
) -> None:
    # Given an alarm whose metrics the emulator has, one whose metrics it does not have, and a clock moved by hand
    alarm, other = (
        {"AlarmName": name, "MetricName": EXPRESSION, "Namespace": metric_math.NAMESPACE, "Threshold": 1.0}
        | {"StateValue": "INSUFFICIENT_DATA"}
        for name in ("Failed", "Errors")
    )
    later: list[tuple[float, Callable[[], object]]] = []
    now = 1000.0
    points = {"failed": failed, "timedOut": timed_out}
    for field, value in {
        "_alarms": {"Failed": alarm, "Errors": other},
        "_composite_alarms": {},
        "_metrics": {
            ("AWS/States", metric, cloudwatch._dims_key({})): [{"Timestamp": now, "Value": 1.0}] * number
            for metric, number in points.items()
        },
        "_evaluate_all_alarms": None,
    }.items():
        monkeypatch.setattr(cloudwatch, field, value)
    monkeypatch.setattr("local.emulator_patches.metric_math.time.time", lambda: now)
    monkeypatch.setattr(metric_math, "start_timer", lambda seconds, work: later.append((seconds, work)))
    metric_math.patch_evaluation(
        {
            "Failed": {metric: stat(metric, "AWS/States") for metric in points},
            "Errors": {metric: stat(metric, "AWS/Lambda") for metric in points},
        }
    )
    # When
    cloudwatch._evaluate_all_alarms()
    # Then
    assert (alarm["StateValue"], other["StateValue"]) == (state, "INSUFFICIENT_DATA")
    # And it ends with its period
    if state == "ALARM":
        ((seconds, work),) = later
        now += seconds + 1
        work()
    assert alarm["StateValue"] == "OK"
