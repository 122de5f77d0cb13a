"""One cause is one message: what another alarm explains has a composite alarm, which is silent while that is raised."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest

from infra.alarm_causes import CAUSES, WAIT_PERIOD, cause_of
from infra.functions import SPECS
from infra.own_metrics import ANY_FUNCTION
from tests.unit.infra.resolved_template import ResolvedTemplate

if TYPE_CHECKING:
    from tests.unit.infra.conftest import Assembly

ALARM = "AWS::CloudWatch::Alarm"
COMPOSITE = "AWS::CloudWatch::CompositeAlarm"
ONLY_EXPLAINS = re.compile(r"AlarmsLedgerRefuses[a-z]")
"""Logical ids of alarms that explain others; one alarm is raised with all of them, and sends the message."""


def messages(template: ResolvedTemplate) -> dict[str, dict[str, Any]]:
    """The composite alarms by the ARN of the alarm in their rule."""
    return {
        body["AlarmRule"].removeprefix('ALARM("').removesuffix('")'): body
        for body in template.of_kind(COMPOSITE).values()
    }


def named(template: ResolvedTemplate, entry: str) -> dict[str, dict[str, Any]]:
    """Alarms of this name, and of its instances, by ARN."""
    return {
        template.arn(name): body
        for name, body in template.of_kind(ALARM).items()
        if body["AlarmDescription"].endswith(f"#{entry.lower()}")
    }


def own_metric(body: dict[str, Any]) -> tuple[Any, ...]:
    return body["Namespace"], body["MetricName"], body["Threshold"], body["Period"]


def test_every_alarm_has_one_way_to_the_topic(assembly: Assembly, other_assembly: Assembly) -> None:
    for item in (assembly, other_assembly):
        template = ResolvedTemplate(item.template)
        (topic,) = template.of_kind("AWS::SNS::Topic")
        composites = messages(template)
        assert composites
        only_explain = {name for name in template.of_kind(ALARM) if ONLY_EXPLAINS.match(name)}
        for name, body in template.of_kind(ALARM).items():
            ways = [body, *(found for arn, found in composites.items() if arn == template.arn(name))]
            # Then it publishes itself, or a composite alarm does with the same words, or it only explains others
            expected = [] if name in only_explain else [[template.arn(topic)]]
            assert [way["AlarmActions"] for way in ways if "AlarmActions" in way] == expected, name
            assert {way["AlarmDescription"] for way in ways} == {body["AlarmDescription"]}
        assert len(composites) == len(template.of_kind(COMPOSITE))


def test_whenever_a_function_is_refused_one_alarm_tells_it(assembly: Assembly) -> None:
    # Given the alarm of all functions, and that of each, which explains its errors
    found = named(ResolvedTemplate(assembly.template), "LedgerRefuses").values()
    told = [body for body in found if "AlarmActions" in body]
    assert [body["Dimensions"] for body in told] == [[{"Name": "service", "Value": ANY_FUNCTION}]]
    # Then the functions write both metrics together, and the alarms compare them in the same way
    assert {own_metric(body) for body in found} == {own_metric(told[0])}
    services = {body["Dimensions"][0]["Value"] for body in found}
    assert services == {ANY_FUNCTION, *(spec.name for spec in SPECS)}


def test_what_another_alarm_explains_is_silent_while_that_one_is_raised(other_assembly: Assembly) -> None:
    # Given a stage with three shards and records of Kinesis and of Kafka
    template = ResolvedTemplate(other_assembly.template)
    composites = messages(template)
    found: dict[str, list[str]] = {}
    for entry, cause in CAUSES.items():
        causes = named(template, cause.partition("-")[0])
        for arn, body in named(template, entry).items():
            message = composites.get(arn)
            if message is not None:
                # Then the cause is that of the same function, shard or stream
                suppressor = causes[message["ActionsSuppressor"]]
                assert instance(suppressor) == instance(body), arn
                # And is waited for, at the beginning and until the metric of the consequence has forgotten it
                assert message["ActionsSuppressorWaitPeriod"] == 120
                assert message["ActionsSuppressorExtensionPeriod"] == body["Period"] + 600
                found.setdefault(entry, []).append(arn)
    # A Kafka topic has no alarm that would explain its lag.
    assert {entry: len(arns) for entry, arns in found.items()} == {
        "Errors": len(SPECS),
        "LateArrivals": 1,
        "StreamOldest": 3,
        "StreamSpilling": 3,
        "RecordsBehind": 1,
    }


def instance(body: dict[str, Any]) -> str:
    """Function, shard or delivery stream of an alarm, as far as its description says."""
    text = body["AlarmDescription"]
    found = re.search(r"[Ff]unction (\w+)|for (route):|^Shard (\w+):|stream of (\w+)", text)
    return next(filter(None, found.groups())) if found else ""


def test_no_cause_is_silenced_by_another() -> None:
    assert not {cause.partition("-")[0] for cause in CAUSES.values()} & CAUSES.keys()


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
        ("Errors-settle", "LedgerRefuses-settle"),
        # Another function that is refused explains nothing
        ("Errors-plan", None),
        ("LateArrivals", "LedgerRefuses-route"),
        ("StreamOldest", "StreamSilent"),
        ("StreamOldest-2", "StreamSilent-2"),
        # The alarm of another shard explains nothing
        ("StreamOldest-orders", None),
        ("RecordsBehind-clicks", None),
        ("Failed-Overnight", None),
    ],
)
def test_the_cause_of_an_alarm(name: str, cause: str | None) -> None:
    alarms = {"LedgerRefuses", "LedgerRefuses-route", "LedgerRefuses-settle", "StreamSilent", "StreamSilent-2"}
    assert cause_of(name, alarms) == cause
