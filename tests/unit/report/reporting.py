"""Helpers for the tests of the report: manifests of both lanes, job runs, and a report of them."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from lake.ledger import (
    CommitReference,
    CostRow,
    CostShare,
    ManifestRow,
    Published,
    PublishedObjects,
    PublishedTotals,
    State,
)
from lake.manifest import Lane, Partition
from lake.time import iso_utc
from report.figures import AlarmChange, ExecutionFacts, ManifestFigures, Report, cost_figures

MORNING = datetime(2026, 11, 20, 9, 30, tzinfo=UTC)
OBJECTS = PublishedObjects(1, 1, "")


def row(
    name: str = "m1",
    lane: Lane = Lane.BATCH,
    state: State = State.DONE,
    seconds: float = 60,
    rejects: dict[str, int] | None = None,
    **changes: Any,
) -> ManifestRow:
    """A manifest of 10 files and 1,000 bytes that was created in the morning and ended after ``seconds``."""
    made = changes.pop("made", MORNING)
    ended = iso_utc(made + timedelta(seconds=seconds))
    totals = PublishedTotals(100, rejects or {}, 0, OBJECTS, OBJECTS, 1000)
    published = Published(1, CommitReference("k", "0"), totals) if state == State.DONE else None
    facts: dict[str, Any] = {
        "id": name,
        "state": state,
        "lane": lane,
        "partition": Partition("orders", f"{made:%Y-%m-%d}", made.hour),
        "created_at": iso_utc(made),
        "bytes": 1000,
        "files": 10,
        "published": published,
        "changed_at": ended,
        "finished_at": ended if state in (State.DONE, State.FAILED) else None,
        **changes,
    }
    return ManifestRow(**facts)


def cost_row(name: str = "jr_1", lane: Lane = Lane.BATCH, minute: int = 0, **changes: Any) -> CostRow:
    """A job run of five minutes and two dollars, of two datasets."""
    start = MORNING + timedelta(minutes=minute)
    facts: dict[str, Any] = {
        "id": name,
        "run": None,
        "lane": lane,
        "engine": "glue-flex" if lane is Lane.BATCH else "glue",
        "started_at": iso_utc(start),
        "ended_at": iso_utc(start + timedelta(minutes=5)),
        "seconds": 300,
        "dpu_milliseconds": 1,
        "vcpu_milliseconds": 0,
        "gb_milliseconds": 0,
        "micro_dollars": 2_000_000,
        "shares": (CostShare("orders", 1_500_000, 10**9, 3), CostShare("clicks", 500_000, 10**9, 1)),
        "execution": "night" if lane is Lane.BATCH else None,
        **changes,
    }
    return CostRow(**facts)


NIGHT = ExecutionFacts(
    "night",
    {"planned_at": iso_utc(MORNING), "runs": 1, "manifests": 2, "files": 20, "bytes": 2000, "micro_dollars": 1_900_000}
    | {"ends_at": iso_utc(MORNING + timedelta(minutes=4)), "deadline": iso_utc(MORNING + timedelta(hours=1))}
    | {"outcome": "FAILED", "done": 1, "failed": 1, "open": 0, "rows": 100, "rejects": 3, "failed_files": 0}
    | {"damaged_objects": 0},
)


def report_of(*rows: ManifestRow, costs: tuple[CostRow, ...] = (), **changes: Any) -> Report:
    figures = ManifestFigures(MORNING)
    for item in rows:
        figures.add(item)
    figures_of_costs = cost_figures(costs)
    runs = tuple(run for run in figures_of_costs.job_runs if run.execution == NIGHT.name)
    facts: dict[str, Any] = {
        "title": "Execution night",
        "stack": "hybrid-router-test",
        "period": "Files of the plan.",
        "made_at": iso_utc(MORNING),
        "figures": figures,
        "costs": figures_of_costs,
        "executions": (replace(NIGHT, job_runs=runs),),
        "alarms": (AlarmChange("Late", iso_utc(MORNING), "ALARM", "Threshold crossed"),),
        **changes,
    }
    return Report(**facts)


def full_report() -> Report:
    """A report in which each chart has data, with texts of uploaders that look like markup."""
    rows = [row(), row("s", Lane.STREAM, seconds=20)]
    rows.append(row("bad", state=State.FAILED, reason="the file s3://input/<b>evil</b>\n is not readable"))
    rows.append(row("rejects", rejects={"not JSON": 7, "</script><script>alert(1)</script>": 1}))
    return report_of(*rows, costs=(cost_row(), cost_row("stream", Lane.STREAM, minute=1)))
