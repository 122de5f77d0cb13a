"""A message goes to the topic of the alarms once a month, and comes back to a queue of the stage."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING

from infra.synth import synth
from lake.settings import AlarmSettings
from router.sweep.self_test import REQUEST
from tests.unit.infra.conftest import Assembly, listed
from tests.unit.infra.resolved_template import ResolvedTemplate

if TYPE_CHECKING:
    from pathlib import Path

ALARM, QUEUE, SCHEDULE = "AWS::CloudWatch::Alarm", "AWS::SQS::Queue", "AWS::Scheduler::Schedule"


def publishing_roles(assembly: Assembly) -> set[str]:
    return {name for name, statement in assembly.statements() if "sns:Publish" in listed(statement["Action"])}


def test_a_schedule_has_sweep_send_the_test(assembly: Assembly) -> None:
    # Given a stage in New York's time zone
    schedule = assembly.one(SCHEDULE, "SelfTest")
    # Then it is sent on the first of each month, in that time zone, by sweep
    assert (schedule["ScheduleExpression"], schedule["ScheduleExpressionTimezone"]) == (
        "cron(0 9 1 * ? *)",
        "America/New_York",
    )
    assert schedule["Target"]["Arn"]["Fn::GetAtt"][0].startswith("Routersweep")
    assert json.loads(schedule["Target"]["Input"]) == {REQUEST: True}
    assert any(name.startswith("Routersweep") for name in publishing_roles(assembly))
    assert not any(name.startswith("Schedules") for name in publishing_roles(assembly))


def test_a_queue_of_the_stage_gets_what_the_topic_sends_and_sweep_knows_both(assembly: Assembly) -> None:
    template = ResolvedTemplate(assembly.template)
    (queue,) = (name for name in template.of_kind(QUEUE) if name.startswith("SelfTest"))
    (topic,) = template.of_kind("AWS::SNS::Topic")
    (subscription,) = template.of_kind("AWS::SNS::Subscription").values()
    assert (subscription["TopicArn"], subscription["Endpoint"]) == (template.arn(topic), template.arn(queue))
    # Then sweep has both in its environment, and no other function has
    functions = assembly.resources("AWS::Lambda::Function").items()
    told = {name: body.get("Environment", {}).get("Variables", {}) for name, body in functions}
    (sweep,) = (variables for variables in told.values() if "SELF_TEST_QUEUE" in variables)
    assert (sweep["POWERTOOLS_SERVICE_NAME"], sweep["SELF_TEST_QUEUE"]) == ("sweep", {"Ref": queue})
    assert sweep["ALARM_TOPIC"] == {"Ref": topic}
    # And the command line knows the queue, which is not a person
    assert assembly.template["Outputs"]["SelfTestQueue"]["Value"] == {"Fn::GetAtt": [queue, "Arn"]}


def test_a_stage_can_do_without(assembly: Assembly, tmp_path: Path) -> None:
    settings = replace(assembly.settings, alarms=AlarmSettings(self_test=""))
    without = Assembly(synth(settings, tmp_path), settings)
    for kind in (ALARM, QUEUE, SCHEDULE):
        assert not [name for name in without.resources(kind) if "SelfTest" in name]
    assert without.resources("AWS::SNS::Subscription") == {}
    assert "SelfTestQueue" not in without.template["Outputs"]
    assert not any(name.startswith("Routersweep") for name in publishing_roles(without))
