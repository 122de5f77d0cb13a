"""The sections of a page: a chart, and the table with the same figures. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lake.bills import MICRO
from lake.counted import format_count
from lake.format_values import format_dollars, format_duration
from report.charts import MAX_BARS, MAX_RUNS
from report.executions import badge, outcome_of, plan_beside_outcome
from report.figures import MAX_NAMED_MANIFESTS
from report.tables import Cell, dollars, duration, instant, number, size, table, text
from report.texts import safe

if TYPE_CHECKING:
    from collections.abc import Callable

    from report.model import Report

MAX_EXECUTIONS = 20
"""Of a day with many backfills."""
NO_DATASET = "(no manifest)"
"""Of a job run that held none: it failed early, or found everything done."""


def tiles(report: Report) -> str:
    """The numbers that a reader looks for first."""
    total = report.figures.total
    found = [
        ("rows published", f"{total.rows:,}"),
        ("files", f"{total.files:,}"),
        ("lines in the quarantine", f"{total.rejects.total():,}"),
        ("unreadable files", f"{total.failed_files:,}"),
        ("manifests not done", f"{total.failed + total.open:,}"),
        ("job runs", f"{len(report.costs.job_runs):,}"),
        ("cost", format_dollars(report.costs.total.dollars)),
    ]
    for lane, figures in report.figures.lanes.items():
        if (latency := figures.latency.total()) is not None:
            found.append((f"{lane} lane, half within", format_duration(latency.p50)))
    cells = "".join(f"<div><b>{value}</b><span>{safe(name)}</span></div>" for name, value in found)
    return f'<div class="tiles">{cells}</div>'


def executions(report: Report) -> str:
    """Plan beside outcome of each execution."""
    parts = [
        f"<h3>{safe(item.name)} {badge(outcome_of(item))}</h3>{plan_beside_outcome(item)}"
        for item in report.executions[:MAX_EXECUTIONS]
    ]
    left = len(report.executions) - len(parts)
    note = f"<p>{format_count(left, 'more execution is', 'more executions are')} not shown.</p>" if left else ""
    return "".join(parts) + note or "<p>No execution has begun a job run.</p>"


def latency(report: Report) -> str:
    """Each lane's latency by the time at which files arrived."""
    rows = []
    for lane, figures in report.figures.lanes.items():
        if (found := figures.latency.total()) is not None:
            times = [duration(seconds) for seconds in (found.p50, found.p90, found.p99, found.longest)]
            others = [number(figures.old_files), number(figures.again)]
            rows.append([text(lane), number(found.files), *times, *others])
    columns = ("lane", "files", "50 %", "90 %", "99 %", "longest", "files from before", "manifests converted again")
    return _shown("latency", table(columns, rows), rows, "No file was published.")


def backlog(report: Report) -> str:
    """What waited, by lane."""
    rows = []
    for lane, figures in report.figures.lanes.items():
        if points := figures.backlog.points():
            top = max(points, key=lambda point: point.bytes)
            last = points[-1]
            numbers = [number(top.files), size(top.bytes), instant(top.instant), number(last.files), size(last.bytes)]
            rows.append([text(lane), *numbers])
    columns = ("lane", "most files", "most bytes", "at", "files at the end", "bytes at the end")
    return _shown("backlog", table(columns, rows), rows, "Nothing waited.")


def runs(report: Report) -> str:
    """Job runs on a time line."""
    rows = [
        [
            text(run.id),
            text(run.lane),
            text(run.engine),
            text(run.state),
            instant(run.start),
            duration(run.end - run.start),
            number(run.files),
            size(run.bytes),
            dollars(run.micro_dollars / MICRO),
            text(run.reason),
        ]
        for run in report.costs.job_runs
    ]
    columns = ("job run", "lane", "engine", "end", "start", "time", "files", "bytes", "dollars", "reason")
    note = f"<p>The time line has the first {MAX_RUNS}.</p>" if len(rows) > MAX_RUNS else ""
    return _shown("runs", note + table(columns, rows), rows, "No job run has ended.")


def rejects(report: Report) -> str:
    """Quarantined lines by reason."""
    counts = report.figures.total.rejects.most_common()
    rows = [[text(reason), number(lines)] for reason, lines in counts]
    failed = report.figures.total.failed_files
    note = f"<p>Unreadable files, in the quarantine by reference: {failed:,}.</p>" if failed else ""
    return _shown("rejects", note + table(("reason", "lines"), rows), rows, note or "Every line became a row.")


def datasets(report: Report) -> str:
    """What each dataset has published."""
    rows = [
        [
            text(name),
            number(counts.files),
            size(counts.bytes),
            number(counts.rows),
            number(counts.rejects.total()),
            number(counts.failed_files),
            number(counts.done),
            number(counts.failed),
            number(counts.open),
        ]
        for name, counts in sorted(report.figures.datasets.items(), key=lambda item: -item[1].bytes)
    ]
    columns = ("dataset", "files", "bytes", "rows", "quarantined lines", "unreadable files", "done", "failed", "open")
    return table(columns, rows) if rows else "<p>No manifest.</p>"


def unfinished(report: Report) -> str:
    """Manifests that are not DONE, with the reason."""
    found = report.figures.unfinished
    rows = [
        [
            *map(text, (item.id, item.partition, item.lane, item.state)),
            instant(item.since),
            number(item.files),
            text(item.reason),
        ]
        for item in found
    ]
    if not rows:
        return "<p>All manifests are done.</p>"
    total = report.figures.total.failed + report.figures.total.open
    note = f"<p>The first {MAX_NAMED_MANIFESTS} of {total:,}.</p>" if total > len(found) else ""
    return note + table(("manifest", "partition", "lane", "state", "since", "files", "reason"), rows)


def cost(report: Report) -> str:
    """Dollars by lane and dataset."""
    rows = [
        [
            text(lane),
            text(dataset or NO_DATASET),
            number(part.files),
            size(part.bytes),
            dollars(part.dollars),
            _per_gb(part.dollars_per_gb),
        ]
        for (lane, dataset), part in report.costs.by_lane_and_dataset.items()
    ]
    note = f"<p>{safe(report.metered)}; the chart has the {MAX_BARS} dearest datasets.</p>"
    columns = ("lane", "dataset", "files", "bytes", "dollars", "dollars per GB")
    return _shown("cost", note + table(columns, rows), rows, "No job run has ended.")


def alarms(report: Report) -> str:
    """Alarms that have changed their state."""
    if report.alarms is None:
        reads = (
            "'hybrid-router report' reads them, with the right to cloudwatch:DescribeAlarms and DescribeAlarmHistory"
        )
        return f"<p>They were not read: {reads}.</p>"
    rows = [[instant(item.at), text(item.name), text(item.state), text(item.reason)] for item in report.alarms]
    return table(("at", "alarm", "state", "reason"), rows) if rows else "<p>No alarm has changed its state.</p>"


def _per_gb(value: float | None) -> Cell:
    return Cell("", -1) if value is None else Cell(f"${value:,.6f}", value)


def _shown(name: str, tables: str, rows: list[list[Cell]], nothing: str) -> str:
    """A chart above its table; ``nothing`` without rows."""
    if not rows:
        return nothing if nothing.startswith("<") else f"<p>{safe(nothing)}</p>"
    canvas = f'<canvas id="{name}" role="img" aria-label="{name}; the table has its figures"></canvas>'
    return f'<div class="chart">{canvas}</div>{tables}'


SECTIONS: dict[str, Callable[[Report], str]] = {
    "Plan and outcome": executions,
    "Latency, by the arrival of the files": latency,
    "Backlog": backlog,
    "Job runs": runs,
    "Quarantined lines by reason": rejects,
    "Datasets": datasets,
    "Manifests that are not done": unfinished,
    "Cost by lane and dataset": cost,
    "Alarms": alarms,
}
