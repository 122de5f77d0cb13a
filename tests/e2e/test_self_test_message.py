"""The self-test of the alarms arrives where alarms do."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from tests.e2e.schedules import changed_schedule
from tests.e2e.subscription import subscribe_queue
from tests.e2e.waiting import wait_for

if TYPE_CHECKING:
    from tests.e2e.scenario import Scenario


def test_the_message_of_the_schedule_reaches_a_subscriber(scenario: Scenario) -> None:
    # Given a person who subscribes to the topic of the alarms
    queue = subscribe_queue(scenario.cloud, scenario.deployment.outputs.alarm_topic, "people")
    sqs = scenario.cloud.client("sqs")
    # When the time of the self-test has come
    soon = datetime.now(UTC) + timedelta(seconds=1)
    now = {"ScheduleExpression": f"at({soon:%Y-%m-%dT%H:%M:%S})", "ScheduleExpressionTimezone": "UTC"}
    with changed_schedule(scenario, lambda schedule: "SelfTest" in schedule["Name"], **now):
        messages = wait_for("the message", lambda: sqs.receive_message(QueueUrl=queue).get("Messages"))
    # Then its text says what it is, of which stage, and that there is nothing to do
    text = json.loads(messages[0]["Body"])["Message"]
    assert text.startswith("Self-test: alarms of the stage e2e reach you. No action is needed.")
