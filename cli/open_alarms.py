"""The alarms of a stack that are in the state ALARM."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lake.time import iso_utc

if TYPE_CHECKING:
    from cli.deployed_stack import DeployedStack


def read_open_alarms(stack: DeployedStack) -> list[dict[str, Any]]:
    """Name, description, and since when, the newest first. Raises botocore's errors.

    The name of another stage's stack can begin with the name of this one; its alarms have another topic.
    """
    pages = stack.cloudwatch.get_paginator("describe_alarms").paginate(
        AlarmNamePrefix=f"{stack.name}-", StateValue="ALARM"
    )
    alarms = [
        alarm
        for page in pages
        for alarm in (*page.get("MetricAlarms", ()), *page.get("CompositeAlarms", ()))
        if stack.outputs.alarm_topic in alarm.get("AlarmActions", ())
    ]
    alarms.sort(key=lambda alarm: alarm["StateUpdatedTimestamp"], reverse=True)
    return [
        {
            "name": alarm["AlarmName"],
            "since": iso_utc(alarm["StateUpdatedTimestamp"]),
            "description": alarm.get("AlarmDescription", ""),
        }
        for alarm in alarms
    ]
