"""What reaches the people who subscribe to the topic: the self-test, and one message for one cause."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from cli.open_alarms import read_open_alarms
from tests.e2e.schedules import changed_schedule
from tests.e2e.subscription import subscribe_queue
from tests.e2e.waiting import wait_for

if TYPE_CHECKING:
    from typing import Any

    from tests.e2e.scenario import Scenario

FIELDS = ("AlarmName", "AlarmRule", "AlarmDescription", "AlarmActions", "ActionsSuppressor")
"""What PutCompositeAlarm would set to its default."""


def test_the_message_of_the_schedule_reaches_a_subscriber_and_comes_back(scenario: Scenario) -> None:
    # Given a person who subscribes to the topic of the alarms
    queue = subscribe_queue(scenario.cloud, scenario.deployment.outputs.alarm_topic, "people")
    sqs = scenario.cloud.client("sqs")
    # When the time of the self-test has come
    soon = datetime.now(UTC) + timedelta(seconds=1)
    now = {"ScheduleExpression": f"at({soon:%Y-%m-%dT%H:%M:%S})", "ScheduleExpressionTimezone": "UTC"}
    with changed_schedule(scenario, lambda schedule: "SelfTest" in schedule["Name"], **now):
        messages = wait_for("the message", lambda: sqs.receive_message(QueueUrl=queue).get("Messages"))
    # Then its text says what it is, of which stage, and that there is nothing to do
    body = json.loads(messages[0]["Body"])
    assert body["Message"].startswith("Self-test: alarms of the stage e2e reach you. No action is needed.")
    # And the next sweep finds the same message in the stage's own queue
    tests = scenario.deployment.ledger.self_tests
    wait_for("the id of the message", lambda: tests.get().message == body["MessageId"])
    assert tests.get().arrived_at is None
    scenario.deployment.sweep(dry_run=False)
    assert tests.get().arrived_at is not None


def test_one_cause_is_one_message(scenario: Scenario) -> None:
    # Given a person who subscribes, and an alarm that another one explains, without periods in which it waits
    queue = subscribe_queue(scenario.cloud, scenario.deployment.outputs.alarm_topic, "people-of-causes")
    cloudwatch, sqs = scenario.cloud.client("cloudwatch"), scenario.cloud.client("sqs")
    message = composite_alarm(scenario, "StreamOldest")
    periods = dict.fromkeys(("ActionsSuppressorWaitPeriod", "ActionsSuppressorExtensionPeriod"), 0)
    cloudwatch.put_composite_alarm(**{field: message[field] for field in FIELDS}, **periods)
    cause, consequence = (name_of(message[field]) for field in ("ActionsSuppressor", "AlarmRule"))

    def told() -> list[str]:
        found = sqs.receive_message(QueueUrl=queue, MaxNumberOfMessages=10).get("Messages", [])
        for item in found:
            sqs.delete_message(QueueUrl=queue, ReceiptHandle=item["ReceiptHandle"])
        return [json.loads(json.loads(item["Body"])["Message"])["AlarmName"] for item in found]

    def set_state(alarm: str, state: str) -> None:
        cloudwatch.set_alarm_state(AlarmName=alarm, StateValue=state, StateReason="test")

    try:
        # When both are raised
        set_state(cause, "ALARM")
        set_state(consequence, "ALARM")
        # Then the cause is told, and status has both
        assert told() == [cause]
        open_alarms = {alarm["name"]: alarm["explained_by"] for alarm in read_open_alarms(scenario.deployment)}
        # An execution of another test can have failed without a notification.
        open_alarms = {name: explained for name, explained in open_alarms.items() if "AlarmsFailed" not in name}
        assert open_alarms == {cause: None, message["AlarmName"]: cause}
        # When the cause has ended, and the consequence has not
        set_state(cause, "OK")
        # Then it is told
        assert told() == [message["AlarmName"]]
    finally:
        for alarm in (cause, consequence):
            set_state(alarm, "OK")
        cloudwatch.put_composite_alarm(**{field: message[field] for field in (*FIELDS, *periods)})
    assert told() == []


def composite_alarm(scenario: Scenario, entry: str) -> dict[str, Any]:
    """The composite alarm with this entry in the runbook."""
    pages = scenario.cloud.client("cloudwatch").get_paginator("describe_alarms").paginate(AlarmTypes=["CompositeAlarm"])
    found: list[dict[str, Any]] = [alarm for page in pages for alarm in page["CompositeAlarms"]]
    return next(alarm for alarm in found if alarm["AlarmDescription"].endswith(f"#{entry.lower()}"))


def name_of(reference: str) -> str:
    """Of an alarm by its ARN, or by a rule of this one alarm."""
    return reference.rpartition(":alarm:")[2].removesuffix('")')
