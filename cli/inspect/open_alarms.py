"""The alarms of a stack, and those that are in the state ALARM."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from cli.deployed_stack import DeployedStack
from cli.documents import OpenAlarm
from lake.time import iso_utc


def own_alarms(stack: DeployedStack) -> Iterator[dict[str, Any]]:
    """The alarms that publish to the stack's topic. Raises botocore's errors.

    The name of another stage's stack can begin with the name of this one; its alarms have another topic.
    """
    describe: Any = stack.cloudwatch.get_paginator("describe_alarms").paginate
    for page in describe(AlarmTypes=["MetricAlarm"], AlarmNamePrefix=f"{stack.name}-"):
        for alarm in page["MetricAlarms"]:
            if stack.outputs.alarm_topic in alarm.get("AlarmActions", ()):
                yield alarm


def read_alarms(stack: DeployedStack) -> tuple[tuple[OpenAlarm, ...], int]:
    """The open alarms, newest first, and the number of alarms without a state.

    CloudWatch has not evaluated those yet; the local cloud never does. Raises botocore's errors.
    """
    alarms = sorted(own_alarms(stack), key=lambda alarm: alarm["StateUpdatedTimestamp"], reverse=True)
    opened = tuple(
        OpenAlarm(
            alarm["AlarmName"],
            iso_utc(alarm["StateUpdatedTimestamp"]),
            stack.runnable(alarm.get("AlarmDescription", "")),
        )
        for alarm in alarms
        if alarm["StateValue"] == "ALARM"
    )
    return opened, sum(alarm["StateValue"] == "INSUFFICIENT_DATA" for alarm in alarms)
