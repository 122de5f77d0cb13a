"""The page of a report: each section has a chart and a table with the same figures. Pure."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from lake.engines.description import MICRO, SUCCEEDED
from lake.ledger import State
from lake.texts import format_count, format_dollars, format_duration, format_instant, printable
from report.executions import SCROLLED_FROM, badge, execution_list, outcome_badges
from report.figures import MAX_NAMED_MANIFESTS, NO_DATASET, CostPart, Report
from report.html import (
    Cell,
    dollars,
    dollars_per_gb,
    duration,
    instant,
    large,
    number,
    reason_line,
    render_document,
    safe,
    size,
    table,
    text,
)

MAX_RUNS = 150
"""Maximum bars on the time line; the table has more job runs."""
MAX_REASON = 100
"""Maximum length of a job run's reason next to its bar; the table has more of it."""
MAX_BARS = 20
"""Maximum bars of datasets and of reasons, the largest first."""


def chart_data(report: Report) -> dict[str, Any]:
    """One entry for each chart that is not empty; times are in seconds since the epoch."""
    lanes = report.figures.lanes.items()
    charts = {
        "latency": {
            lane: {
                "time": [start for start, _ in found],
                "p50": [percentiles.p50 for _, percentiles in found],
                "p99": [percentiles.p99 for _, percentiles in found],
            }
            for lane, figures in lanes
            if (found := figures.latencies())
        },
        "backlog": {
            lane: {"time": [point.instant for point in points], "bytes": [point.bytes for point in points]}
            for lane, figures in lanes
            if (points := figures.backlogs())
        },
        "runs": [
            {
                "name": run.id,
                "kind": f"{run.lane}, {run.engine}" if run.state in ("", SUCCEEDED) else run.state,
                "start": run.start,
                "end": run.end,
                "files": run.files,
                "reason": printable(run.reason)[:MAX_REASON],
            }
            for run in report.costs.job_runs[:MAX_RUNS]
        ],
        "rejects": dict(report.figures.total.rejects.most_common(MAX_BARS)),
        "cost": _cost_bars(report.costs.groups),
    }
    return {name: data for name, data in charts.items() if data}


def _cost_bars(parts: Mapping[tuple[str, str], CostPart]) -> dict[str, Any]:
    """Dollars by dataset, most expensive first, and by lane for each."""
    sums: Counter[str] = Counter()
    for (_, dataset), part in parts.items():
        sums[dataset] += part.micro_dollars
    datasets = [name for name, _ in sums.most_common(MAX_BARS)]
    nothing = CostPart()
    lanes = {
        lane: [parts.get((lane, name), nothing).dollars for name in datasets]
        for lane in sorted({lane for lane, _ in parts})
    }
    return {"datasets": [name or NO_DATASET for name in datasets], "lanes": lanes} if datasets else {}


OPEN_ROWS = 10
"""Maximum rows of a table without a chart that is shown unfolded."""


def tiles(report: Report) -> str:
    total = report.figures.total
    quarantined, unfinished = total.rejects.total(), total.failed + total.open
    found = [
        ("rows published", large(total.rows), ""),
        ("files", f"{total.files:,}", ""),
        ("lines in the quarantine", f"{quarantined:,}", "waiting" if quarantined else ""),
        ("unreadable files", f"{total.failed_files:,}", "bad" if total.failed_files else ""),
        ("manifests not done", f"{unfinished:,}", "bad" if total.failed else "waiting" if unfinished else ""),
        ("job runs", f"{len({run.job_run for run in report.costs.job_runs}):,}", ""),
        ("cost", format_dollars(report.costs.total.dollars), ""),
    ]
    for lane, figures in report.figures.lanes.items():
        if (latency := figures.total_latency()) is not None:
            found.append((f"{lane} lane, median latency", format_duration(latency.p50), ""))
    return number_tiles(found)


def number_tiles(found: Sequence[tuple[str, str, str]]) -> str:
    """A tile for each name, number and colour: ``good``, ``waiting``, ``bad`` or none."""
    cells = "".join(f'<div><b class="{kind}">{value}</b><span>{safe(name)}</span></div>' for name, value, kind in found)
    return f'<div class="tiles">{cells}</div>'


def executions(report: Report) -> str:
    if not report.executions:
        return "<p>No execution has begun a job run.</p>"
    return execution_list(report.executions, with_reasons=not report.message)


def latency(report: Report) -> str:
    rows = [
        {
            "lane": text(lane),
            "files": number(found.files),
            "50 %": duration(found.p50),
            "90 %": duration(found.p90),
            "99 %": duration(found.p99),
            "longest": duration(found.longest),
            "files over 3 days older": number(figures.old_files),
            "manifests converted again": number(figures.again),
        }
        for lane, figures in report.figures.lanes.items()
        if (found := figures.total_latency()) is not None
    ]
    caption = "<p>A dot or line: half of the files took no longer. The bar or band above it reaches to 99 %.</p>"
    return _shown("latency", rows, "No file was published.", caption)


def backlog(report: Report) -> str:
    rows = []
    for lane, figures in report.figures.lanes.items():
        if points := figures.backlogs():
            top, last = max(points, key=lambda point: point.bytes), points[-1]
            most = {"most files": number(top.files), "most bytes": size(top.bytes), "at": instant(top.instant)}
            end = {"files at the end": number(last.files), "bytes at the end": size(last.bytes)}
            rows.append({"lane": text(lane), **most, **end})
    return _shown("backlog", rows, "Nothing waited.")


def runs(report: Report) -> str:
    rows = [
        {
            "job run": text(run.id),
            "lane": text(run.lane),
            "engine": text(run.engine),
            "end": text(run.state),
            "start": instant(run.start),
            "time": duration(run.end - run.start),
            "files": number(run.files),
            "bytes": size(run.bytes),
            "dollars": dollars(run.micro_dollars / MICRO),
            "reason": text(run.reason),
        }
        for run in report.costs.job_runs
    ]
    note = f"<p>The time line shows the first {MAX_RUNS}.</p>" if len(rows) > MAX_RUNS else ""
    return _shown("runs", rows, "No job run has ended.", note)


def rejects(report: Report) -> str:
    counts = report.figures.total.rejects.most_common()
    rows = [{"reason": text(reason), "lines": number(lines)} for reason, lines in counts]
    failed = report.figures.total.failed_files
    note = f"<p>Unreadable files, in the quarantine by reference: {failed:,}.</p>" if failed else ""
    return _shown("rejects", rows, note or "Every line became a row.", note)


def datasets(report: Report) -> str:
    rows = [
        {
            "dataset": text(name),
            "files": number(counts.files),
            "bytes": size(counts.bytes),
            "rows": number(counts.rows),
            "quarantined lines": number(counts.rejects.total()),
            "unreadable files": number(counts.failed_files),
            "done": number(counts.done),
            "failed": number(counts.failed),
            "open": number(counts.open),
        }
        for name, counts in sorted(report.figures.datasets.items(), key=lambda item: -item[1].bytes)
    ]
    if not rows:
        return "<p>No manifest.</p>"
    tables = [
        {
            "dataset": text(name),
            "commits": number(len(figures.batches)),
            "manifests shown": number(figures.shown),
            "published, not shown yet": number(figures.waiting),
            "oldest published": instant(figures.waiting_since or ""),
            "lag, 50 %": duration(figures.lag.p50 if figures.lag else None),
            "lag, 99 %": duration(figures.lag.p99 if figures.lag else None),
        }
        for name, figures in sorted(report.figures.tables.items())
        if figures.batches
    ]
    shown = _folded(rows, is_open=len(rows) <= OPEN_ROWS)
    return f"{shown}<h3>Iceberg tables</h3>{_folded(tables, is_open=len(tables) <= OPEN_ROWS)}" if tables else shown


def unfinished(report: Report) -> str:
    found = report.figures.unfinished
    if not found:
        return "<p>All manifests are done.</p>"
    items = [
        (
            badge("FAILED" if item.state == State.FAILED else "OPEN", item.state),
            str(item.partition),
            (
                f"{item.lane} lane",
                format_count(item.files, "file"),
                f"since {format_instant(item.changed_at)}",
                item.id,
            ),
            item.reason or "",
        )
        for item in found
    ]
    total = report.figures.total.failed + report.figures.total.open
    note = f"<p>The first {MAX_NAMED_MANIFESTS} of {total:,}.</p>" if total > len(found) else ""
    return note + item_list(items)


def item_list(items: Sequence[tuple[str, str, Sequence[str], str]]) -> str:
    """A list of what a person must read: a badge (HTML), a title, facts, and a reason below them."""
    lines = "".join(
        f'<li>{mark} <b>{safe(title)}</b> <span class="faint">{safe(" · ".join(facts))}</span>'
        f"{reason_line(reason)}</li>"
        for mark, title, facts, reason in items
    )
    box = ' class="scrolled" tabindex="0"' if len(items) >= SCROLLED_FROM else ""
    return f"<div{box}><ul>{lines}</ul></div>"


def cost(report: Report) -> str:
    rows = [
        {
            "lane": text(lane),
            "dataset": text(dataset or NO_DATASET),
            "files": number(part.files),
            "bytes": size(part.bytes),
            "dollars": dollars(part.dollars),
            "dollars per GB": dollars_per_gb(part.dollars_per_gb),
        }
        for (lane, dataset), part in report.costs.groups.items()
    ]
    more = f"; the chart has the {MAX_BARS} most expensive datasets" if len(rows) > MAX_BARS else ""
    return _shown("cost", rows, "No job run has ended.", f"<p>From {safe(report.metered)}{more}.</p>")


def alarms(report: Report) -> str:
    if report.alarms is None:
        reads = (
            "'hybrid-router report' reads them, with the right to cloudwatch:DescribeAlarms and DescribeAlarmHistory"
        )
        return f"<p>They were not read: {reads}.</p>"
    items = [
        (
            badge("FAILED" if item.state == "ALARM" else "SUCCEEDED", item.state),
            item.name,
            (format_instant(item.at),),
            item.reason,
        )
        for item in report.alarms
    ]
    return item_list(items) if items else "<p>No alarm has changed its state.</p>"


def _shown(name: str, rows: Sequence[Mapping[str, Cell]], nothing: str, caption: str = "") -> str:
    """A chart, its caption (HTML), and its folded table; ``nothing`` if there are no rows."""
    if not rows:
        return nothing if nothing.startswith("<") else f"<p>{safe(nothing)}</p>"
    canvas = f'<canvas id="{name}" role="img" aria-label="{name}; the table has its figures"></canvas>'
    return f'<div class="chart">{canvas}</div>{caption}{_folded(rows)}'


def _folded(rows: Sequence[Mapping[str, Cell]], *, is_open: bool = False) -> str:
    opened = " open" if is_open else ""
    return f"<details{opened}><summary>Table: {format_count(len(rows), 'row')}</summary>{table(rows)}</details>"


SECTIONS: dict[str, Callable[[Report], str]] = {
    "Executions": executions,
    "Manifests that are not done": unfinished,
    "Latency, by the arrival of the files": latency,
    "Backlog": backlog,
    "Job runs": runs,
    "Quarantined lines by reason": rejects,
    "Datasets": datasets,
    "Cost by lane and dataset": cost,
    "Alarms": alarms,
}


def render_page(report: Report) -> str:
    message = f"<p>{safe(report.message)}</p>" if report.message else ""
    made = f"Stack {safe(report.stack)}; made at {format_instant(report.made_at)}; all times are UTC."
    header = f"""<p class="outcomes">{outcome_badges(Counter(item.outcome for item in report.executions))}</p>
{message}
<p class="faint">{safe(report.period)} {made}</p>"""
    parts = "".join(f"<section><h2>{safe(name)}</h2>{make(report)}</section>" for name, make in SECTIONS.items())
    main = f"{tiles(report)}\n{parts}"
    return render_document(report.title, report.stack, header, main, chart_data(report), report.options)
