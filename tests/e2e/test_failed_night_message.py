"""A failed night reaches the subscribers: by its notification, and by the alarms on the failures."""

import json
from contextlib import ExitStack

import pytest

from cli.inspect.status import read_alarms
from tests.e2e.made_by_hand import subscribe_queue
from tests.e2e.permissions import role_name, without
from tests.e2e.scenario import Scenario

NOTIFICATION = "hybrid-router: overnight execution failed"


# The machine repeats a refused publication for more than a minute.
@pytest.mark.parametrize("may_publish", [True, pytest.param(False, marks=pytest.mark.long)])
def test_a_failed_night_reaches_its_subscribers(scenario: Scenario, may_publish: bool) -> None:
    # Given a subscriber, and a night that fails
    queue = subscribe_queue(scenario.cloud, scenario.deployment.outputs.alarm_topic, f"people-of-nights-{may_publish}")
    iam, sqs = scenario.cloud.client("iam"), scenario.cloud.client("sqs")
    with ExitStack() as lacking:
        lacking.enter_context(without(iam, role_name(iam, "RouterplanRole"), "dynamodb:Query"))
        if not may_publish:
            lacking.enter_context(without(iam, role_name(iam, "MachinesOvernightRole"), "sns:Publish"))
        # When
        end = scenario.execute(scenario.deployment.outputs.overnight, {})
    assert end["status"] == "FAILED"
    # Then both channels report it, and the alarm does even if the machine cannot
    opened, without_state = read_alarms(scenario.deployment)
    try:
        found = sqs.receive_message(QueueUrl=queue, MaxNumberOfMessages=10).get("Messages", [])
        subjects = {json.loads(item["Body"])["Subject"] for item in found}
        alarms = {subject for subject in subjects if subject.startswith("ALARM: ")}
        assert subjects - alarms == ({NOTIFICATION} if may_publish else set())
        for name in ("AlarmsErrors", "AlarmsFailed"):
            assert [name in subject for subject in sorted(alarms)].count(True) == 1
            assert [name in item.name for item in opened].count(True) == 1
        # And the alarms that the local cloud does not evaluate are counted
        assert 0 < without_state < 8
    finally:
        for item in opened:
            scenario.cloud.client("cloudwatch").set_alarm_state(
                AlarmName=item.name, StateValue="OK", StateReason="test"
            )
