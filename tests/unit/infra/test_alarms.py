"""The alarms of a stage: few, plain, each with a way to the topic; some are raised when the stage itself is silent."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import pytest

from infra.functions import SPECS
from infra.schedules import SWEEP_RATE
from infra.synth import synth
from lake.settings import AlarmSettings, ScheduleSettings, Settings, StreamSettings, VerifySettings
from lake.shards import MAX_SHARDS
from tests.unit.infra.conftest import Assembly

ALARM = "AWS::CloudWatch::Alarm"
MAX_ALARMS = 20
"""Of a stage with default settings: what a person can know by heart."""
MAX_METRICS = 10
"""Of the expression of an alarm (Amazon CloudWatch User Guide, "Limits that apply to alarms")."""
MAX_ALARMS_OF_WIDGET = 100
"""Amazon CloudWatch API Reference, "Dashboard Body Structure and Syntax", alarm widget."""


def named(item: Assembly, name: str) -> dict[str, Any]:
    """The alarm whose entry in the runbook has this heading."""
    found = [body for body in item.resources(ALARM).values() if body["AlarmDescription"].endswith(f"#{name.lower()}")]
    assert len(found) == 1, f"{len(found)} alarms are called {name}"
    return found[0]


def watched(alarm: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Each metric of an alarm, or of its expression."""
    if "Metrics" not in alarm:
        return [dict(alarm)]
    return [{**item["MetricStat"]["Metric"], **item["MetricStat"]} for item in alarm["Metrics"] if "MetricStat" in item]


@pytest.fixture(scope="session")
def many_shards(tmp_path_factory: pytest.TempPathFactory) -> Assembly:
    """A stage with everything that multiplies what a stage has: 20 streaming jobs and a scheduled verification."""
    settings = Settings(
        stage="shards",
        stream=StreamSettings(jobs=MAX_SHARDS),
        verify=VerifySettings(share=0.01),
    )
    return Assembly(synth(settings, tmp_path_factory.mktemp("shards")), settings)


def test_a_stage_has_at_most_twenty_plain_alarms(assembly: Assembly, many_shards: Assembly) -> None:
    for item in (assembly, many_shards):
        assert len(item.resources(ALARM)) <= MAX_ALARMS
        assert item.resources("AWS::CloudWatch::CompositeAlarm") == {}


def test_every_alarm_publishes_to_the_topic(assembly: Assembly, other_assembly: Assembly) -> None:
    for item in (assembly, other_assembly):
        (topic,) = item.resources("AWS::SNS::Topic")
        for name, body in item.resources(ALARM).items():
            assert body["AlarmActions"] == [{"Ref": topic}], name
            assert "InsufficientDataActions" not in body


def test_no_expression_has_more_metrics_than_cloudwatch_allows(assembly: Assembly, other_assembly: Assembly) -> None:
    for item in (assembly, other_assembly):
        for name, body in item.resources(ALARM).items():
            assert len(watched(body)) <= MAX_METRICS, name


@pytest.mark.parametrize(
    ("name", "metric", "hours"), [("NoSweep", "Invocations", 1), ("NoNight", "ExecutionsStarted", 25)]
)
def test_silence_of_the_stage_raises_an_alarm(assembly: Assembly, name: str, metric: str, hours: int) -> None:
    # Given a metric that the service writes, so that it does not depend on the stage
    alarm = named(assembly, name)
    assert (alarm["MetricName"], alarm["Namespace"].partition("/")[0]) == (metric, "AWS")
    # Then its absence raises the alarm
    assert (alarm["TreatMissingData"], alarm["ComparisonOperator"]) == ("breaching", "LessThanThreshold")
    assert (alarm["Threshold"], alarm["Statistic"]) == (1, "Sum")
    assert alarm["Period"] * alarm["EvaluationPeriods"] == hours * 3600


def test_all_other_alarms_are_quiet_without_data(assembly: Assembly) -> None:
    breaching = [body for body in assembly.resources(ALARM).values() if body["TreatMissingData"] != "notBreaching"]
    assert len(breaching) == 2


def test_events_of_scheduled_functions_that_lambda_drops_raise_an_alarm(assembly: Assembly) -> None:
    found = {body["MetricName"] for body in watched(named(assembly, "DroppedEvents"))}
    functions = [body["Dimensions"][0]["Value"]["Ref"] for body in watched(named(assembly, "DroppedEvents"))]
    assert found == {"AsyncEventsDropped"}
    for name in ("sweep", "catalog", "plan"):
        assert [function for function in functions if function.startswith(f"Router{name}")], name


def test_errors_of_every_function_that_nobody_waits_for_raise_an_alarm(other_assembly: Assembly) -> None:
    functions = [body["Dimensions"][0]["Value"]["Ref"] for body in watched(named(other_assembly, "Errors"))]
    # Whoever promotes or resubmits gets the error as the answer of the command
    expected = {spec.name.replace("_", "") for spec in SPECS} - {"promote", "resubmit"}
    assert {re.sub(r"^Router|Function.*", "", function) for function in functions} == expected


def test_an_execution_that_fails_or_times_out_raises_an_alarm(assembly: Assembly, many_shards: Assembly) -> None:
    for item in (assembly, many_shards):
        found = [(body["MetricName"], str(body["Dimensions"])) for body in watched(named(item, "Failed"))]
        machines = item.resources("AWS::StepFunctions::StateMachine")
        assert len(set(found)) == 2 * len(machines)
        assert {metric for metric, _ in found} == {"ExecutionsFailed", "ExecutionsTimedOut"}


def test_alarms_without_a_meaning_for_the_settings_are_left_out(
    assembly: Assembly, tmp_path_factory: pytest.TempPathFactory
) -> None:
    # Given no budget, and nights that are not of every day
    settings = Settings(
        stage="weekly",
        schedule=ScheduleSettings(overnight="cron(0 22 ? * FRI *)"),
        alarms=AlarmSettings(daily_dollars=0),
    )
    weekly = Assembly(synth(settings, tmp_path_factory.mktemp("weekly")), settings)
    # Then
    missing = assembly.resources(ALARM).keys() - weekly.resources(ALARM).keys()
    assert {name.removeprefix("Alarms")[:-8] for name in missing} == {"DailyDollars", "NoNight"}


def test_the_stack_subscribes_the_address_of_the_settings(assembly: Assembly, other_assembly: Assembly) -> None:
    kind = "AWS::SNS::Subscription"
    assert assembly.resources(kind) == {}
    (subscription,) = other_assembly.resources(kind).values()
    assert (subscription["Protocol"], subscription["Endpoint"]) == ("email", "data-team@example.com")


def test_a_stall_that_every_sweep_counts_is_one_alarm(assembly: Assembly) -> None:
    alarm = named(assembly, "SweepStalled")
    (minutes,) = re.findall(r"rate\((\d+) minutes\)", SWEEP_RATE)
    assert (alarm["MetricName"], alarm["Statistic"], alarm["Threshold"]) == ("SweepStalled", "Maximum", 1)
    # A period without a value would end the alarm, and the next sweep would raise it again
    assert alarm["Period"] >= 2 * 60 * int(minutes)
    assert "listing" in alarm["AlarmDescription"]


def test_a_run_that_starts_while_the_sweep_looks_raises_no_alarm(assembly: Assembly) -> None:
    # Given one value in each period
    alarm = named(assembly, "StreamSilent")
    (minutes,) = re.findall(r"rate\((\d+) minutes\)", SWEEP_RATE)
    assert alarm["Period"] == 60 * int(minutes)
    # Then two of them in three periods raise the alarm, also where one came early and the next one late
    assert (alarm["DatapointsToAlarm"], alarm["EvaluationPeriods"]) == (2, 3)
