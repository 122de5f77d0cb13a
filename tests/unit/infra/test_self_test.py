"""A message goes to the topic of the alarms once a month, so that a way to people that is broken is noticed."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from infra.synth import synth
from lake.settings import AlarmSettings
from tests.unit.infra.conftest import Assembly, listed

if TYPE_CHECKING:
    from pathlib import Path

SCHEDULE = "AWS::Scheduler::Schedule"


def publishing_roles(assembly: Assembly) -> set[str]:
    return {name for name, statement in assembly.statements() if "sns:Publish" in listed(statement["Action"])}


def test_a_schedule_sends_a_message_to_the_topic(assembly: Assembly) -> None:
    # Given a stage in New York's time zone
    schedule = assembly.one(SCHEDULE, "SelfTest")
    # Then a message comes on the first of each month, in that time zone, by the topic of the alarms
    assert (schedule["ScheduleExpression"], schedule["ScheduleExpressionTimezone"]) == (
        "cron(0 9 1 * ? *)",
        "America/New_York",
    )
    (topic,) = assembly.resources("AWS::SNS::Topic")
    assert schedule["Target"]["Arn"] == {"Ref": topic}
    # And says what it is, that nothing has to be done, and what to do if it stays out
    text = schedule["Target"]["Input"]
    assert text.startswith("Self-test: alarms of the stage test_ny reach you. No action is needed.")
    assert text.endswith("run 'hybrid-router doctor --stage test_ny'.")
    assert any(name.startswith("SchedulesRole") for name in publishing_roles(assembly))


def test_a_stage_can_do_without(assembly: Assembly, tmp_path: Path) -> None:
    settings = replace(assembly.settings, alarms=AlarmSettings(self_test=""))
    without = Assembly(synth(settings, tmp_path), settings)
    assert not [name for name in without.resources(SCHEDULE) if "SelfTest" in name]
    assert not any(name.startswith("SchedulesRole") for name in publishing_roles(without))
