"""The alarms of a stack, and those that are in the state ALARM."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lake.time import iso_utc

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cli.deployed_stack import DeployedStack

ALARM_TYPES = ["MetricAlarm", "CompositeAlarm"]


def own_alarms(stack: DeployedStack, **filters: Any) -> Iterator[dict[str, Any]]:  # noqa: ANN401
    """The alarms that publish to the stack's topic; ``filters`` are those of DescribeAlarms. Raises botocore's errors.

    The name of another stage's stack can begin with the name of this one; its alarms have another topic.
    """
    describe: Any = stack.cloudwatch.get_paginator("describe_alarms").paginate
    for page in describe(AlarmTypes=ALARM_TYPES, AlarmNamePrefix=f"{stack.name}-", **filters):
        for alarm in (*page.get("MetricAlarms", ()), *page.get("CompositeAlarms", ())):
            if stack.outputs.alarm_topic in alarm.get("AlarmActions", ()):
                yield alarm


def read_open_alarms(stack: DeployedStack) -> list[dict[str, Any]]:
    """Name, description, and since when, the newest first. Raises botocore's errors."""
    alarms = sorted(
        own_alarms(stack, StateValue="ALARM"), key=lambda alarm: alarm["StateUpdatedTimestamp"], reverse=True
    )
    return [
        {
            "name": alarm["AlarmName"],
            "since": iso_utc(alarm["StateUpdatedTimestamp"]),
            "description": alarm.get("AlarmDescription", ""),
        }
        for alarm in alarms
    ]
