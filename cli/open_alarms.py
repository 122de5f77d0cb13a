"""The alarms of a stack, and those that are in the state ALARM."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lake.time import iso_utc

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cli.deployed_stack import DeployedStack

ALARM_TYPES = ["MetricAlarm", "CompositeAlarm"]
EXPLAINED = frozenset({"Alarm", "ExtensionPeriod"})
"""Values of ``ActionsSuppressedBy``: another alarm is raised, or has ended a short time ago. While a composite alarm
waits whether that one comes, nothing explains it (Amazon CloudWatch API Reference, CompositeAlarm)."""


def own_alarms(stack: DeployedStack, **filters: Any) -> Iterator[dict[str, Any]]:  # noqa: ANN401
    """The alarms that publish to the stack's topic; ``filters`` are those of DescribeAlarms. Raises botocore's errors.

    The name of another stage's stack can begin with the name of this one; its alarms have another topic. Of an alarm
    that another one can explain, it is the composite alarm, which publishes in its place and has its state.
    """
    describe: Any = stack.cloudwatch.get_paginator("describe_alarms").paginate
    for page in describe(AlarmTypes=ALARM_TYPES, AlarmNamePrefix=f"{stack.name}-", **filters):
        for alarm in (*page.get("MetricAlarms", ()), *page.get("CompositeAlarms", ())):
            if stack.outputs.alarm_topic in alarm.get("AlarmActions", ()):
                yield alarm


def read_open_alarms(stack: DeployedStack) -> list[dict[str, Any]]:
    """Name, description, since when, and the alarm that explains it; the newest first. Raises botocore's errors."""
    alarms = sorted(
        own_alarms(stack, StateValue="ALARM"), key=lambda alarm: alarm["StateUpdatedTimestamp"], reverse=True
    )
    return [
        {
            "name": alarm["AlarmName"],
            "since": iso_utc(alarm["StateUpdatedTimestamp"]),
            "description": alarm.get("AlarmDescription", ""),
            "explained_by": _cause(alarm),
        }
        for alarm in alarms
    ]


def _cause(alarm: dict[str, Any]) -> str | None:
    """Name of the alarm because of which this one sends no message; None: it sends its own."""
    if alarm.get("ActionsSuppressedBy") not in EXPLAINED:
        return None
    # A name, or an ARN that ends with it.
    return str(alarm["ActionsSuppressor"]).rpartition(":alarm:")[2]
