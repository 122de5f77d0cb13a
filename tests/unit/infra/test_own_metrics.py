"""Every metric that the stage writes is read by an alarm or the dashboard."""

from __future__ import annotations

import json
import re
from pathlib import Path

from infra.functions import SPECS
from infra.log_groups import METRIC_NAME
from router.telemetry import Metric
from tests.unit.infra.conftest import Assembly
from tests.unit.infra.resolved_template import ResolvedTemplate

ROOT = Path(__file__).parents[3]
WRITTEN = re.compile(r"count(?:_bytes)?\(\s*Metric\.([A-Z_]+)|Metric\.([A-Z_]+)\)[,)]")


def written() -> set[tuple[str, str]]:
    """(function, metric) of every metric that the code of a function writes."""
    return {
        (spec.name, Metric[first or second].value)
        for spec in SPECS
        for first, second in WRITTEN.findall((ROOT / "router" / f"{spec.module.replace('.', '/')}.py").read_text())
    }


def read(assembly: Assembly) -> set[tuple[str, str]]:
    """(function, metric) of the own namespace, in alarms and on the dashboard."""
    template = ResolvedTemplate(assembly.template)
    namespace = assembly.one("AWS::Lambda::Function", "Routersweep")["Environment"]["Variables"]
    own = namespace["POWERTOOLS_METRICS_NAMESPACE"]
    alarms = template.of_kind("AWS::CloudWatch::Alarm").values()
    watched = [
        metric
        for body in alarms
        for metric in (
            [item["MetricStat"]["Metric"] for item in body["Metrics"] if "MetricStat" in item]
            if "Metrics" in body
            else [body]
        )
    ]
    found = {(body["Dimensions"][0]["Value"], body["MetricName"]) for body in watched if _is_own(body, own)}
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
    # These are read only with [[records]], and with an Iceberg table.
    assert read(assembly) == written() - {("route", "FailedRecordFiles"), ("tables", "TablesBehindMinutes")}
    assert read(other_assembly) == written()
