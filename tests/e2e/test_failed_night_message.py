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


@pytest.mark.parametrize(
    ("request_", "may_publish", "is_notified"),
    [
        ({}, True, True),
        # The person who has started it sees the error, and nobody else is told by the machine.
        ({"datset": "orders"}, True, False),
        # The machine repeats the publication for more than a minute.
        pytest.param({}, False, False, marks=pytest.mark.long),
    ],
    ids=["notified", "refused input", "refused publication"],
)
def test_a_failed_night_is_one_message(
    scenario: Scenario, request_: dict[str, str], may_publish: bool, is_notified: bool
) -> None:
    # Given a person who subscribes, and a night that fails
    name = f"people-of-nights-{len(request_)}-{may_publish}"
    queue = subscribe_queue(scenario.cloud, scenario.deployment.outputs.alarm_topic, name)
    iam, sqs = scenario.cloud.client("iam"), scenario.cloud.client("sqs")
    with ExitStack() as lacking:
        lacking.enter_context(without(iam, role_name(iam, "RouterplanRole"), "dynamodb:Query"))
        if not may_publish:
            # And a machine that may not tell it
            lacking.enter_context(without(iam, role_name(iam, "MachinesOvernightRole"), "sns:Publish"))
        # When
        end = scenario.execute(scenario.deployment.outputs.overnight, request_)
    assert end["status"] == "FAILED"
    # Then
    found = sqs.receive_message(QueueUrl=queue, MaxNumberOfMessages=10).get("Messages", [])
    (subject,) = [json.loads(message["Body"])["Subject"] for message in found]
    if is_notified:
        assert subject == "hybrid-router: overnight execution failed"
    else:
        assert subject.startswith("ALARM: ")
        assert "AlarmsFailedOvernight" in subject
    cloudwatch = scenario.cloud.client("cloudwatch")
    pages = cloudwatch.get_paginator("describe_alarms").paginate(StateValue="ALARM")
    raised = [alarm["AlarmName"] for page in pages for alarm in page["MetricAlarms"]]
    try:
        assert len(raised) == (not is_notified)
    finally:
        for name in raised:
            cloudwatch.set_alarm_state(AlarmName=name, StateValue="OK", StateReason="test")
