"""One cause is one message: what another alarm explains has a composite alarm, which is silent while that is raised."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from infra.alarm_causes import CAUSES, WAIT_PERIOD, cause_of
from tests.unit.infra.resolved_template import ResolvedTemplate

if TYPE_CHECKING:
    from tests.unit.infra.conftest import Assembly

ALARM = "AWS::CloudWatch::Alarm"
COMPOSITE = "AWS::CloudWatch::CompositeAlarm"


def messages(template: ResolvedTemplate) -> dict[str, dict[str, Any]]:
    """The composite alarms by the ARN of the alarm in their rule."""
    return {
        body["AlarmRule"].removeprefix('ALARM("').removesuffix('")'): body
        for body in template.of_kind(COMPOSITE).values()
    }


def named(template: ResolvedTemplate, entry: str) -> dict[str, dict[str, Any]]:
    """Alarms with this entry in the runbook, by ARN."""
    return {
        template.arn(name): body
        for name, body in template.of_kind(ALARM).items()
        if body["AlarmDescription"].endswith(f"#{entry.lower()}")
    }


def test_every_alarm_has_one_way_to_the_topic(assembly: Assembly, other_assembly: Assembly) -> None:
    for item in (assembly, other_assembly):
        template = ResolvedTemplate(item.template)
        (topic,) = template.of_kind("AWS::SNS::Topic")
        composites = messages(template)
        assert composites
        for name, body in template.of_kind(ALARM).items():
            ways = [body, *(found for arn, found in composites.items() if arn == template.arn(name))]
            # Then it publishes itself, or a composite alarm does with the same words
            assert [way["AlarmActions"] for way in ways if "AlarmActions" in way] == [[template.arn(topic)]], name
            assert {way["AlarmDescription"] for way in ways} == {body["AlarmDescription"]}
        assert len(composites) == len(template.of_kind(COMPOSITE))


def test_what_another_alarm_explains_is_silent_while_that_one_is_raised(other_assembly: Assembly) -> None:
    # Given a stage with three shards and records of Kinesis and of Kafka
    template = ResolvedTemplate(other_assembly.template)
    composites = messages(template)
    found: dict[str, list[str]] = {}
    for entry, cause in CAUSES.items():
        causes = named(template, cause.name)
        for arn, body in named(template, entry).items():
            message = composites.get(arn)
            if message is not None:
                # Then the cause is silenced by nothing, and is that of the same shard or stream
                assert message["ActionsSuppressor"] in causes
                assert causes[message["ActionsSuppressor"]]["AlarmActions"]
                if cause.same_instance:
                    assert causes[message["ActionsSuppressor"]].get("Dimensions", [])[1:] == body["Dimensions"][1:]
                # And is waited for, at the beginning and until the metric of the consequence has forgotten it
                assert message["ActionsSuppressorWaitPeriod"] == 120
                assert message["ActionsSuppressorExtensionPeriod"] == body["Period"] + 600
                found.setdefault(entry, []).append(arn)
    # A Kafka topic has no alarm that would explain its lag.
    assert {entry: len(arns) for entry, arns in found.items()} == {
        "Errors": len(other_assembly.resources("AWS::Lambda::Function")) - 1,
        "LateArrivals": 1,
        "StreamOldest": 3,
        "StreamSpilling": 3,
        "RecordsBehind": 1,
    }


def test_no_cause_is_silenced_by_another() -> None:
    assert not {cause.name for cause in CAUSES.values()} & CAUSES.keys()


def test_what_passes_by_itself_is_told_before_it_has_passed(assembly: Assembly, other_assembly: Assembly) -> None:
    for item in (assembly, other_assembly):
        template = ResolvedTemplate(item.template)
        composites = messages(template)
        periods = [body["Period"] for name, body in template.of_kind(ALARM).items() if template.arn(name) in composites]
        assert 2 * WAIT_PERIOD.to_seconds() < min(periods)


def test_a_composite_alarm_has_the_name_by_which_the_stack_is_listed(assembly: Assembly) -> None:
    names = {body["AlarmName"] for body in ResolvedTemplate(assembly.template).of_kind(COMPOSITE).values()}
    assert {name for name in names if not name.startswith("hybrid-router-test-ny-Alarms")} == set()
    assert "hybrid-router-test-ny-AlarmsErrors-settle" in names


@pytest.mark.parametrize(
    ("name", "cause"),
    [
        ("Errors-settle", "LedgerRefuses"),
        ("StreamOldest", "StreamSilent"),
        ("StreamOldest-2", "StreamSilent-2"),
        # The alarm of another shard explains nothing
        ("StreamOldest-orders", None),
        ("RecordsBehind-clicks", None),
        ("Failed-Overnight", None),
    ],
)
def test_the_cause_of_an_alarm(name: str, cause: str | None) -> None:
    assert cause_of(name, {"LedgerRefuses", "StreamSilent", "StreamSilent-2"}) == cause
