"""The figures that the page's script draws. Pure."""

from __future__ import annotations

from typing import Any

from lake.bills import SUCCEEDED
from lake.texts import printable
from report.costs import CostFigures
from report.model import Report

MAX_RUNS = 150
"""Bars on the time line; the table has more."""
MAX_REASON = 100
"""Characters of the reason of a job run beside its bar; the table has more of it."""
MAX_BARS = 20
"""Bars of datasets and reasons, the largest first."""


def chart_data(report: Report) -> dict[str, Any]:
    """One entry for each chart that has something to show; times in seconds since the epoch."""
    charts = {
        "latency": _latency(report),
        "backlog": _backlog(report),
        "runs": _runs(report.costs),
        "rejects": dict(report.figures.total.rejects.most_common(MAX_BARS)),
        "cost": _cost(report.costs),
    }
    return {name: data for name, data in charts.items() if data}


def _latency(report: Report) -> dict[str, Any]:
    points = {str(lane): figures.latency.points() for lane, figures in report.figures.lanes.items()}
    return {
        lane: {
            "time": [point.start for point in found],
            "files": [point.percentiles.files for point in found],
            "p50": [point.percentiles.p50 for point in found],
            "p99": [point.percentiles.p99 for point in found],
        }
        for lane, found in points.items()
        if found
    }


def _backlog(report: Report) -> dict[str, Any]:
    points = {str(lane): figures.backlog.points() for lane, figures in report.figures.lanes.items()}
    return {
        lane: {"time": [point.instant for point in found], "bytes": [point.bytes for point in found]}
        for lane, found in points.items()
        if found
    }


def _runs(costs: CostFigures) -> list[dict[str, Any]]:
    return [
        {
            "name": run.id,
            "kind": f"{run.lane}, {run.engine}" if run.state in ("", SUCCEEDED) else run.state,
            "start": run.start,
            "end": run.end,
            "files": run.files,
            "reason": printable(run.reason)[:MAX_REASON],
        }
        for run in costs.job_runs[:MAX_RUNS]
    ]


def _cost(costs: CostFigures) -> dict[str, Any]:
    """Dollars by dataset, the dearest first, and in each by lane."""
    sums: dict[str, int] = {}
    for (_, dataset), part in costs.by_lane_and_dataset.items():
        sums[dataset] = sums.get(dataset, 0) + part.micro_dollars
    datasets = sorted(sums, key=lambda name: -sums[name])[:MAX_BARS]
    lanes = sorted({lane for lane, _ in costs.by_lane_and_dataset})
    parts = costs.by_lane_and_dataset
    return (
        {
            "datasets": [name or "(no manifest)" for name in datasets],
            "lanes": {
                lane: [parts[lane, name].dollars if (lane, name) in parts else 0 for name in datasets] for lane in lanes
            },
        }
        if datasets
        else {}
    )
