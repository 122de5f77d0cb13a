"""The dashboard is one screen: alarms, then the numbers of the promises, then graphs."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from tests.unit.infra.resolved_template import REGION, ResolvedTemplate

if TYPE_CHECKING:
    from tests.unit.infra.conftest import Assembly

MAX_ROWS = 20
"""Of the grid: about what a screen of 1,200 pixels shows, at 48 pixels each with the browser's own bars."""
PROMISES = {
    "StreamOldestMinutes",
    "ApproximateAgeOfOldestMessage",
    "PlanLateMinutes",
    "NightLateMinutes",
    "SweepStalled",
    "DatasetsAboveQuarantinedShare",
    "ApproximateNumberOfMessagesVisible",
    "DayDollars",
}


def widgets(assembly: Assembly) -> list[dict[str, Any]]:
    """From top to bottom, left to right."""
    (dashboard,) = ResolvedTemplate(assembly.template).of_kind("AWS::CloudWatch::Dashboard").values()
    found: list[dict[str, Any]] = json.loads(dashboard["DashboardBody"])["widgets"]
    return sorted(found, key=lambda widget: (widget["y"], widget["x"]))


def test_the_same_stage_in_two_regions_has_two_dashboards(assembly: Assembly) -> None:
    (dashboard,) = ResolvedTemplate(assembly.template).of_kind("AWS::CloudWatch::Dashboard").values()
    assert dashboard["DashboardName"] == f"hybrid-router-test-ny-{REGION}"


def test_the_alarms_are_at_the_top_and_the_promises_below_them(assembly: Assembly) -> None:
    alarms, promises, *graphs = widgets(assembly)
    assert alarms["type"] == "alarm"
    assert promises["properties"]["view"] == "singleValue"
    assert {metric[1] for metric in promises["properties"]["metrics"]} == PROMISES
    # Then each number says in words what it is
    assert all(metric[-1]["label"] for metric in promises["properties"]["metrics"])
    assert graphs


def test_it_fits_on_one_screen(assembly: Assembly) -> None:
    assert max(widget["y"] + widget["height"] for widget in widgets(assembly)) <= MAX_ROWS
