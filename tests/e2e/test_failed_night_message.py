"""A failed execution is one message: its notification, or that of its alarm if it could not be sent."""

from __future__ import annotations

import json
from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest

from tests.e2e.removed_permission import role_name, without
from tests.e2e.subscription import subscribe_queue

if TYPE_CHECKING:
    from tests.e2e.scenario import Scenario


@pytest.mark.parametrize("may_publish", [True, False])
def test_a_failed_night_is_one_message(scenario: Scenario, may_publish: bool) -> None:
    # Given a person who subscribes, and a night that fails
    queue = subscribe_queue(scenario.cloud, scenario.deployment.outputs.alarm_topic, f"people-of-nights-{may_publish}")
    iam, sqs = scenario.cloud.client("iam"), scenario.cloud.client("sqs")
    with ExitStack() as lacking:
        lacking.enter_context(without(iam, role_name(iam, "RouterplanRole"), "dynamodb:Query"))
        if not may_publish:
            # And a machine that may not tell it
            lacking.enter_context(without(iam, role_name(iam, "MachinesOvernightRole"), "sns:Publish"))
        # When
        end = scenario.execute(scenario.deployment.outputs.overnight, {})
    assert end["status"] == "FAILED"
    # Then
    found = sqs.receive_message(QueueUrl=queue, MaxNumberOfMessages=10).get("Messages", [])
    (subject,) = [json.loads(message["Body"])["Subject"] for message in found]
    if may_publish:
        assert subject == "hybrid-router: overnight execution failed"
    else:
        assert subject.startswith("ALARM: ")
        assert "AlarmsFailedOvernight" in subject
    cloudwatch = scenario.cloud.client("cloudwatch")
    pages = cloudwatch.get_paginator("describe_alarms").paginate(StateValue="ALARM")
    raised = [alarm["AlarmName"] for page in pages for alarm in page["MetricAlarms"]]
    try:
        assert len(raised) == (not may_publish)
    finally:
        for name in raised:
            cloudwatch.set_alarm_state(AlarmName=name, StateValue="OK", StateReason="test")
