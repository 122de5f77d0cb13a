"""The alarms of a stage: few, plain, each connected to the topic; some are raised when the stage itself is silent."""

import json
import re
from collections.abc import Mapping
from functools import partial
from typing import Any

import pytest
from aws_cdk import aws_cloudwatch as cloudwatch

from infra.alarms import RUNBOOK, _of_data
from infra.dashboard import metric_of
from infra.functions import SPECS
from infra.log_groups import METRIC_NAME
from infra.synth import synth
from lake.ledger import State
from lake.settings import AlarmSettings, ScheduleSettings, Settings
from router.telemetry import Metric
from tests.unit.docs.pages import CHECKOUT, Page
from tests.unit.infra.conftest import Assembly
from transform.job_main import print_line
from transform.outcome import HELD, UNKNOWN, ConversionOutcome, format_with_alarm

ALARM = "AWS::CloudWatch::Alarm"
MAX_ALARMS = 20
"""Alarms of a stage with default settings: what a person can know by heart."""
MAX_METRICS = 10
"""Maximum in the expression of an alarm (Amazon CloudWatch User Guide, "Limits that apply to alarms")."""


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


def test_a_stage_has_at_most_twenty_plain_alarms(assembly: Assembly, other_assembly: Assembly) -> None:
    assert len(assembly.resources(ALARM)) <= MAX_ALARMS
    assert other_assembly.resources("AWS::CloudWatch::CompositeAlarm") == {}
    # And three streaming jobs have no more; the other alarms belong to the table and to two records
    more = {body["AlarmDescription"].rpartition("#")[2] for body in other_assembly.resources(ALARM).values()}
    more -= {body["AlarmDescription"].rpartition("#")[2] for body in assembly.resources(ALARM).values()}
    assert more == {"tablesbehind", "recordslate", "failedrecords"}
    assert len(other_assembly.resources(ALARM)) == len(assembly.resources(ALARM)) + len(more) + 1


def test_every_alarm_publishes_to_the_topic_and_has_an_entry_in_the_runbook(
    assembly: Assembly, other_assembly: Assembly
) -> None:
    entries = Page(CHECKOUT / RUNBOOK).anchors
    for item in (assembly, other_assembly):
        (topic,) = item.resources("AWS::SNS::Topic")
        for name, body in item.resources(ALARM).items():
            assert body["AlarmActions"] == [item.arn(topic)], name
            assert "InsufficientDataActions" not in body
            assert body["AlarmDescription"].rpartition(f" See {RUNBOOK}#")[2] in entries
            # And CloudWatch accepts its expression
            assert len(watched(body)) <= MAX_METRICS, name


@pytest.mark.parametrize(
    ("name", "metric", "hours"), [("NoSweep", "Invocations", 1), ("NoNight", "ExecutionsStarted", 26)]
)
def test_silence_of_the_stage_raises_an_alarm(assembly: Assembly, name: str, metric: str, hours: int) -> None:
    # Given a metric that the service writes, so that it does not depend on the stage
    alarm = named(assembly, name)
    (found,) = watched(alarm)
    assert (found["MetricName"], found["Namespace"].partition("/")[0], found["Stat"]) == (metric, "AWS", "Sum")
    # Then its absence raises the alarm, and no older value replaces a missing one
    assert [item["Expression"] for item in alarm["Metrics"] if "Expression" in item] == ["FILL(m0, 0)"]
    assert (alarm["TreatMissingData"], alarm["ComparisonOperator"]) == ("breaching", "LessThanThreshold")
    assert alarm["Threshold"] == 1
    assert found["Period"] * alarm["EvaluationPeriods"] == hours * 3600


def test_an_invocation_that_runs_out_of_time_is_still_in_the_window_of_its_alarm(other_assembly: Assembly) -> None:
    # Given metrics that Lambda writes at the end of an invocation, with the time of its start
    timeouts = {name: body["Timeout"] for name, body in other_assembly.resources("AWS::Lambda::Function").items()}
    interval = 15 * 60
    # Then timeouts at every start are one continuous alarm
    for body in other_assembly.resources(ALARM).values():
        for metric in watched(body):
            if metric["Namespace"] == "AWS/Lambda":
                function = metric["Dimensions"][0]["Value"]
                assert metric["Period"] > interval + timeouts[function], (body["AlarmDescription"], function)
    # And so is a manifest that waits for a permission: the sweep has it tried in the same interval
    (lines,) = watched(named(other_assembly, "JobLines"))
    assert lines["Period"] > interval
    # And so is a stream lane writer with every hour in the quarantine, when the sweep finds the hour complete
    assert min(metric["Period"] for metric in watched(named(other_assembly, "QuarantinedShare"))) > 3600 + interval


def test_a_value_that_arrives_ten_minutes_late_is_still_in_the_window_of_its_alarm(assembly: Assembly) -> None:
    # Given expressions in which a missing value counts, so that no older one replaces it later
    for body in assembly.resources(ALARM).values():
        if "FILL(" in str(body.get("Metrics")):
            assert min(metric["Period"] for metric in watched(body)) > 10 * 60, body["AlarmDescription"]


def test_events_of_scheduled_functions_that_lambda_drops_raise_an_alarm(assembly: Assembly) -> None:
    found = {body["MetricName"] for body in watched(named(assembly, "DroppedEvents"))}
    functions = [body["Dimensions"][0]["Value"] for body in watched(named(assembly, "DroppedEvents"))]
    assert found == {"AsyncEventsDropped"}
    for name in ("sweep", "catalog", "plan"):
        assert [function for function in functions if function.startswith(f"Router{name}")], name


def test_errors_of_every_function_without_a_waiting_caller_raise_an_alarm(other_assembly: Assembly) -> None:
    functions = [body["Dimensions"][0]["Value"] for body in watched(named(other_assembly, "Errors"))]
    # The caller of promote or resubmit gets the error as the answer of the command
    expected = {spec.name.replace("_", "") for spec in SPECS} - {"promote", "resubmit"}
    assert {re.sub(r"^Router|Function.*", "", function) for function in functions} == expected


def test_an_execution_that_fails_or_times_out_raises_an_alarm(assembly: Assembly, other_assembly: Assembly) -> None:
    for item in (assembly, other_assembly):
        found = [(body["MetricName"], str(body["Dimensions"])) for body in watched(named(item, "Failed"))]
        machines = item.resources("AWS::StepFunctions::StateMachine")
        assert len(set(found)) == 2 * len(machines)
        assert {metric for metric, _ in found} == {"ExecutionsFailed", "ExecutionsTimedOut"}


def test_a_small_share_has_no_exponent_in_an_expression() -> None:
    # Given a share that Python would write as 1e-05, a form that CloudWatch's page on metric math does not have
    settings = Settings(stage="small", alarms=AlarmSettings(max_quarantined_share=0.00001))
    line = cloudwatch.Metric(namespace="a", metric_name="b")
    # When
    alarms = _of_data(partial(metric_of, "small", "service"), line, settings)
    # Then
    (share,) = [alarm.metric for alarm in alarms if alarm.name == "IgnoredShare"]
    assert isinstance(share, cloudwatch.MathExpression)
    assert share.expression == "IF(FILL(ignored, 0) > 0.000010 * FILL(arrivals, 0), 1, 0)"


def test_alarms_without_a_meaning_for_the_settings_are_left_out(
    assembly: Assembly, tmp_path_factory: pytest.TempPathFactory
) -> None:
    # Given no budget, no limit of the quarantine, and nights that are not daily
    settings = Settings(
        stage="weekly",
        schedule=ScheduleSettings(overnight="cron(0 22 ? * FRI *)"),
        alarms=AlarmSettings(daily_dollars=0, max_quarantined_share=1),
    )
    weekly = Assembly(synth(settings, tmp_path_factory.mktemp("weekly")), settings)
    # Then
    missing = assembly.resources(ALARM).keys() - weekly.resources(ALARM).keys()
    of_quarantine = {"QuarantinedShare", "IgnoredShare"}
    assert {name.removeprefix("Alarms")[:-8] for name in missing} == {"DailyDollars", "NoNight"} | of_quarantine


WRITTEN = re.compile(r"count(?:_bytes)?\(\s*Metric\.([A-Z_]+)|Metric\.([A-Z_]+)\)[,)]")


def written_metrics() -> set[tuple[str, str]]:
    """(function, metric) of every metric that the code of a function writes."""
    return {
        (spec.name, Metric[first or second].value)
        for spec in SPECS
        for first, second in WRITTEN.findall((CHECKOUT / "router" / f"{spec.module.replace('.', '/')}.py").read_text())
    }


def read_metrics(assembly: Assembly) -> set[tuple[str, str]]:
    """(function, metric) of the product's namespace, in alarms and on the dashboard."""
    namespace = assembly.one("AWS::Lambda::Function", "Routersweep")["Environment"]["Variables"]
    product = namespace["POWERTOOLS_METRICS_NAMESPACE"]
    metrics = [metric for alarm in assembly.resources(ALARM).values() for metric in watched(alarm)]
    found = {
        (body["Dimensions"][0]["Value"], body["MetricName"])
        for body in metrics
        if body.get("Namespace") == product and body["MetricName"] != METRIC_NAME
    }
    (dashboard,) = assembly.resources("AWS::CloudWatch::Dashboard").values()
    for widget in json.loads(dashboard["DashboardBody"])["widgets"]:
        for metric in widget["properties"].get("metrics", []):
            if metric[0] == product:
                found.add((metric[3], metric[1]))
    return found


def test_every_metric_is_written_and_read(assembly: Assembly, other_assembly: Assembly) -> None:
    assert {metric for _, metric in written_metrics()} == {metric.value for metric in Metric}
    # These are read only with [[records]], and with an Iceberg table.
    assert read_metrics(assembly) == written_metrics() - {
        ("route", "FailedRecordFiles"),
        ("tables", "TablesBehindMinutes"),
    }
    assert read_metrics(other_assembly) == written_metrics()


def test_what_several_rounds_of_settle_report_of_an_execution_is_not_added_up(assembly: Assembly) -> None:
    (dashboard,) = assembly.resources("AWS::CloudWatch::Dashboard").values()
    widgets = json.loads(dashboard["DashboardBody"])["widgets"]
    metrics = [metric for widget in widgets for metric in widget["properties"].get("metrics", [])]
    statistics = {metric[1]: metric[-1]["stat"] for metric in metrics if metric[3:4] == ["settle"]}
    assert len(statistics) == 5
    assert set(statistics.values()) == {"Maximum"}


FILTER = "AWS::Logs::MetricFilter"
SECOND_FIELD = re.compile(r'\[\w+, \w+ = "(\w+)", \.\.\.\]')
"""The only kind of pattern that the stack uses: fields separated by spaces, of which the second one is compared."""


def matches(pattern: str, line: str) -> bool:
    """Whether CloudWatch Logs counts the line, for patterns of this one kind."""
    second_field = SECOND_FIELD.fullmatch(pattern)
    assert second_field, f"{pattern} is of another kind: extend this evaluator"
    return line.split(" ", 2)[1] == second_field[1]


@pytest.mark.parametrize(
    ("outcome", "found"),
    [
        (ConversionOutcome("m", State.FAILED, reason="no attempts are left"), True),
        (ConversionOutcome("m", State.SUPERSEDED, reason="given up after 3 attempts: gone", successors=("a",)), True),
        (ConversionOutcome("m", State.SUPERSEDED, reason="promoted", successors=("a",)), False),
        (ConversionOutcome("m", UNKNOWN), True),
        (ConversionOutcome("m", State.DONE, 3, 1), False),
        (ConversionOutcome("m", HELD, reason="ALARM of a name that looks like one"), False),
        (ConversionOutcome("m", HELD, reason="first line\nALARM second line"), False),
        (ConversionOutcome("m", State.FAILED, reason="first line\r\nALARM second line"), True),
    ],
)
def test_an_outcome_is_counted_once_or_not_at_all(
    assembly: Assembly, capsys: pytest.CaptureFixture[str], outcome: ConversionOutcome, found: bool
) -> None:
    # Given: the pattern of the template, and the output of a job
    pattern = assembly.one(FILTER, "LogAlarms")["FilterPattern"]
    print_line(format_with_alarm(outcome))
    # Then
    lines = capsys.readouterr().out.splitlines()
    assert sum(matches(pattern, line) for line in lines) == int(found)


def test_the_filter_reads_the_log_that_glue_writes(assembly: Assembly) -> None:
    name = assembly.one(FILTER, "LogAlarms")["LogGroupName"]
    for part in ("JobsBatch", "JobsStream"):
        arguments = assembly.one("AWS::Glue::Job", part)["DefaultArguments"]
        assert f"{arguments['--custom-logGroup-prefix']}/output" == name
        assert not [key for key in arguments if key.startswith("--continuous-log")]
