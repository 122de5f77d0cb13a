"""The alarms of a stack: which are in the state ALARM, and which have changed their state."""

import heapq
import json
from collections.abc import Iterator
from datetime import datetime
from typing import Any

from cli.deployed_stack import DeployedStack
from cli.documents import OpenAlarm
from lake.time import iso_utc
from report.figures import AlarmChange


def own_alarms(stack: DeployedStack) -> Iterator[dict[str, Any]]:
    """The alarms that publish to the stack's topic: the name of another stack can begin with the name of this one."""
    describe: Any = stack.cloudwatch.get_paginator("describe_alarms").paginate
    for page in describe(AlarmTypes=["MetricAlarm"], AlarmNamePrefix=f"{stack.name}-"):
        for alarm in page["MetricAlarms"]:
            if stack.outputs.alarm_topic in alarm.get("AlarmActions", ()):
                yield alarm


def read_alarms(stack: DeployedStack) -> tuple[tuple[OpenAlarm, ...], int]:
    """The open alarms, newest first, and the number of alarms without a state.

    CloudWatch has not evaluated those yet; the local cloud never evaluates some.
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


MAX_CHANGES = 200
"""The latest ones; an alarm that comes and goes each minute would fill the page."""


def read_alarm_changes(stack: DeployedStack, first: datetime, last: datetime) -> tuple[AlarmChange, ...]:
    """Changes to and from ALARM between two instants (aware), the latest first, of alarms that publish to the topic."""
    changes = (change for alarm in own_alarms(stack) for change in _history(stack, alarm["AlarmName"], first, last))
    return tuple(heapq.nlargest(MAX_CHANGES, changes, key=lambda change: change.at))


def _history(stack: DeployedStack, alarm: str, first: datetime, last: datetime) -> Iterator[AlarmChange]:
    """The changes of one alarm: an account can have thousands of other alarms."""
    pages = stack.cloudwatch.get_paginator("describe_alarm_history").paginate(
        AlarmName=alarm,
        HistoryItemType="StateUpdate",
        StartDate=first,
        EndDate=last,
    )
    for item in (item for page in pages for item in page["AlarmHistoryItems"]):
        data = json.loads(item.get("HistoryData", "{}"))
        old, new = data.get("oldState", {}), data.get("newState", {})
        if data and "ALARM" not in (old.get("stateValue"), new.get("stateValue")):
            continue
        reason = new.get("stateReason", item.get("HistorySummary", ""))
        name = alarm.removeprefix(f"{stack.name}-")
        yield AlarmChange(name, iso_utc(item["Timestamp"]), new.get("stateValue", ""), reason)
