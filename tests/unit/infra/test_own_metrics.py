"""Every metric that the stage writes is read by an alarm or the dashboard, and has its price on the page."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING

from infra.functions import SPECS
from infra.log_alarms import METRIC_NAME
from infra.machine import NOTIFIED_FAILURES
from infra.schedules import SWEEP_RATE
from router.telemetry import ANY_FUNCTION, Metric
from tests.unit.infra.resolved_template import ResolvedTemplate

if TYPE_CHECKING:
    from tests.unit.infra.conftest import Assembly

ROOT = Path(__file__).parents[3]
BY_ALL = re.compile(r"count_for_function_and_all\(Metric\.([A-Z_]+)\)")
WRITTEN = re.compile(r"count(?:_bytes)?\(\s*Metric\.([A-Z_]+)|Metric\.([A-Z_]+)\)[,)]")
EACH = {
    "each function": [spec.name for spec in SPECS],
    "each state machine": ["overnight", "backfill", "stream_window", "verify"],
}
PRICE = 0.30
"""Dollars a month: CloudWatch's list price of a custom metric (https://aws.amazon.com/cloudwatch/pricing/)."""


def written() -> set[tuple[str, str]]:
    """(function, metric) of every metric that the code of a function writes, or that of all functions."""
    handlers = list((ROOT / "router").glob("*/handler.py"))
    functions = {ANY_FUNCTION, *(handler.parent.name for handler in handlers)}
    by_all = BY_ALL.findall((ROOT / "router" / "entry.py").read_text())
    return {(function, Metric[name].value) for name in by_all for function in functions} | {
        (handler.parent.name, Metric[first or second].value)
        for handler in handlers
        for first, second in WRITTEN.findall(handler.read_text())
    }


def read(assembly: Assembly) -> set[tuple[str, str]]:
    """(function, metric) of the own namespace, in alarms and on the dashboard."""
    template = ResolvedTemplate(assembly.template)
    namespace = assembly.one("AWS::Lambda::Function", "Routersweep")["Environment"]["Variables"]
    own = namespace["POWERTOOLS_METRICS_NAMESPACE"]
    alarms = template.of_kind("AWS::CloudWatch::Alarm").values()
    found = {(body["Dimensions"][0]["Value"], body["MetricName"]) for body in alarms if _is_own(body, own)}
    (dashboard,) = template.of_kind("AWS::CloudWatch::Dashboard").values()
    for widget in json.loads(dashboard["DashboardBody"])["widgets"]:
        for metric in widget["properties"].get("metrics", []):
            if metric[0] == own:
                found.add((metric[3], metric[1]))
    return found


def _is_own(alarm: dict, namespace: str) -> bool:
    return alarm.get("Namespace") == namespace and alarm["MetricName"] != METRIC_NAME


def test_every_metric_is_written_and_read(assembly: Assembly, other_assembly: Assembly) -> None:
    assert {metric for _, metric in written()} == {metric.value for metric in Metric}
    # The alarm on records that Firehose could not deliver is there only with [[records]].
    assert read(assembly) == written() - {("route", "FailedRecordFiles")}
    assert read(other_assembly) == written()


def test_what_stays_stalled_is_one_alarm_and_not_one_for_each_sweep(assembly: Assembly) -> None:
    alarms = ResolvedTemplate(assembly.template).of_kind("AWS::CloudWatch::Alarm").values()
    (alarm,) = [body for body in alarms if body.get("MetricName") == "SweepStalled"]
    (minutes,) = re.findall(r"rate\((\d+) minutes\)", SWEEP_RATE)
    assert alarm["Period"] >= 2 * 60 * int(minutes)


def test_glue_writes_no_metrics(assembly: Assembly) -> None:
    for job in assembly.resources("AWS::Glue::Job").values():
        assert not job["DefaultArguments"].keys() & {"--enable-metrics", "--enable-observability-metrics"}


def test_the_page_names_and_prices_every_metric() -> None:
    page = (ROOT / "docs" / "deploy.md").read_text()
    rows = re.findall(r"^\| ((?:`[A-Z]\w+`(?:, )?)+) \| (.+?) \| (?:alarm|dashboard) \|$", page, re.MULTILINE)
    listed = {
        (name, function)
        for names, writer in rows
        for name in re.findall(r"`(\w+)`", names)
        for function in EACH.get(writer, [writer.strip("`")])
    }
    assert {(name, writer) for name, writer in listed if name not in (METRIC_NAME, NOTIFIED_FAILURES)} == {
        (metric, function) for function, metric in written()
    }
    assert METRIC_NAME in {name for name, _ in listed}
    (number, price) = re.findall(r"^\| (\d+) own metrics \| \$(\d+\.\d\d) a month", page, re.MULTILINE)[0]
    assert (int(number), price) == (len(listed), f"{len(listed) * PRICE:.2f}")
