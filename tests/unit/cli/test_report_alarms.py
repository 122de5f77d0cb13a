"""Alarms in a report: those of the stack, changes to and from ALARM, and no more than a page can hold."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest
from botocore.exceptions import ClientError

from cli.inspect.alarms import MAX_CHANGES, read_alarm_changes
from lake.time import iso_utc
from report.model import AlarmChange
from tests.unit.cli.cloudwatch import FakeCloudWatch
from tests.unit.cli.stack_world import FakeLambda, stack_with
from tests.unit.lake.world import MORNING

if TYPE_CHECKING:
    from cli.deployed_stack import DeployedStack


@pytest.fixture
def stack() -> DeployedStack:
    return stack_with(FakeLambda({}))


@pytest.mark.parametrize("code", ["AccessDenied", "ThrottlingException"])
def test_a_page_needs_no_right_to_read_alarms(stack: DeployedStack, code: str) -> None:
    # Given a CloudWatch that refuses
    def refused(_: str) -> None:
        raise ClientError({"Error": {"Code": code, "Message": "no"}}, "DescribeAlarms")

    deprived = replace(stack, cloudwatch=SimpleNamespace(get_paginator=refused))
    # When, Then: any other refusal is an error
    if code == "AccessDenied":
        assert read_alarm_changes(deprived, MORNING, MORNING) is None
    else:
        with pytest.raises(ClientError):
            read_alarm_changes(deprived, MORNING, MORNING)


def test_alarms_of_the_stack_are_shown(stack: DeployedStack) -> None:
    # Given an alarm of the stack, one of another topic, and one of another stack
    changes = [
        {
            "AlarmName": name,
            "Timestamp": MORNING,
            "HistoryData": json.dumps({"newState": {"stateValue": "ALARM", "stateReason": "Threshold crossed"}}),
        }
        for name in ("batch-job-Late", "batch-job-Other", "elsewhere")
    ]
    made = {"oldState": {"stateValue": "INSUFFICIENT_DATA"}, "newState": {"stateValue": "OK"}}
    changes.append({"AlarmName": "batch-job-Late", "Timestamp": MORNING, "HistoryData": json.dumps(made)})
    changes.append({"AlarmName": "batch-job-Late", "Timestamp": MORNING, "HistorySummary": "updated from OK to ALARM"})
    cloudwatch = FakeCloudWatch({"batch-job-Late": "alarm_topic", "batch-job-Other": "other"}, changes)
    # When
    found = read_alarm_changes(replace(stack, cloudwatch=cloudwatch), MORNING, MORNING + timedelta(days=1))
    # Then
    at = iso_utc(MORNING)
    assert found == (
        AlarmChange("Late", at, "ALARM", "Threshold crossed"),
        AlarmChange("Late", at, "", "updated from OK to ALARM"),
    )
    assert cloudwatch.requests["describe_alarms"]["AlarmNamePrefix"] == "batch-job-"
    assert cloudwatch.requests["describe_alarm_history"]["ScanBy"] == "TimestampDescending"


def test_a_flapping_alarm_does_not_fill_the_page(stack: DeployedStack) -> None:
    changes = [{"AlarmName": "batch-job-Late", "Timestamp": MORNING}] * (MAX_CHANGES + 1)
    cloudwatch = FakeCloudWatch({"batch-job-Late": "alarm_topic"}, changes)
    found = read_alarm_changes(replace(stack, cloudwatch=cloudwatch), MORNING, MORNING)
    assert found is not None
    assert len(found) == MAX_CHANGES
