"""``hybrid-router report``: one HTML page about a night or a day, or a folder with the last days and their nights."""

import heapq
import json
import webbrowser
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Annotated

import typer

from cli.commands import Answer
from cli.cost.cost import metered_by, parse_day
from cli.deployed_stack import DeployedStack
from cli.errors import NotFoundError
from cli.inspect.status import own_alarms
from cli.terminal import working
from lake.documents import find_document
from lake.errors import InvalidInputError
from lake.layout import REPORT_INDEX, REPORT_PAGE, plan_summary_key, report_key
from lake.manifest import Lane
from lake.time import iso_utc
from report.collect import (
    ONE_DAY,
    current_rows,
    execution_costs,
    executions_of,
    manifests_of_day,
    read_days,
)
from report.days import render_index
from report.figures import AlarmChange, ManifestFigures, Report, cost_figures, execution_report
from report.sections import render_page


def report_command(
    stack: DeployedStack,
    day: Annotated[str | None, typer.Option("--date", help="UTC day, such as 2026-11-20.")] = None,
    execution: Annotated[str | None, typer.Option(help="Name of an execution of overnight or backfill.")] = None,
    output: Annotated[
        Path | None, typer.Option(help="File or folder to write; default: report-<day or execution>.html.")
    ] = None,
    *,
    open_page: Annotated[bool, typer.Option("--open", help="Show it in the browser.")] = False,
) -> Answer:
    """Write one HTML page about a night or a day; without either, a folder with the last 30 days and their nights."""
    if day is not None and execution is not None:
        raise InvalidInputError("pass either --date, such as 2026-11-20, or --execution with its name")
    now, path = datetime.now(UTC), output or Path()
    with working("reading the ledger ..."):
        if day is None and execution is None:
            path = write_last_days(stack, output or Path(f"report-{stack.name}"), now)
        else:
            # Commands that start an execution print its ARN.
            name = day or str(execution).rsplit(":", 1)[-1]
            report = night_report(stack, name, now) if day is None else day_report(stack, parse_day("--date", day), now)
            if path.is_dir():
                path /= f"report-{name}.html"
            write_page(report, path)
    if open_page:
        webbrowser.open(path.resolve().as_uri())
    return Answer({"page": str(path)}, lambda: typer.echo(str(path)))


def write_last_days(stack: DeployedStack, folder: Path, now: datetime) -> Path:
    """Write the page about the last days with the reports that it links to, and return its path. ``now`` is aware."""
    days = read_days(stack.ledger, now)
    folder.mkdir(parents=True, exist_ok=True)
    bucket = stack.resources.control_bucket
    for item in (item for day in days for item in day.listed):
        with suppress(stack.s3.exceptions.NoSuchKey):
            page = stack.s3.get_object(Bucket=bucket, Key=report_key(item.name))["Body"].read()
            path = folder / item.name / REPORT_PAGE
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(page)
    index = folder / Path(REPORT_INDEX).name
    index.write_text(render_index(stack.name, days, iso_utc(now), stack.options), encoding="utf-8")
    return index


def write_page(report: Report, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(render_page(report), encoding="utf-8")


def night_report(stack: DeployedStack, name: str, now: datetime) -> Report:
    """Return the report of an execution: the manifests of its plan, by their current rows. ``now``: aware."""
    recorded = stack.ledger.executions.facts(name)
    if "planned_at" not in recorded:
        raise NotFoundError(f"the ledger has no plan of {name!r}: 'hybrid-router nights' lists the latest executions")
    planned_at = datetime.fromisoformat(recorded["planned_at"])
    settled_at = datetime.fromisoformat(recorded["settled_at"]) if "settled_at" in recorded else now
    summary = find_document(stack.s3, stack.resources.control_bucket, plan_summary_key(name)) or {}
    figures = ManifestFigures(planned_at)
    for row in current_rows(stack.ledger, summary.get("manifestIds", [])):
        # Promoted manifests belong to no plan any more.
        if row.lane == Lane.BATCH:
            figures.add(row)
    return execution_report(
        name,
        recorded,
        figures,
        execution_costs(stack.ledger, {name: recorded}),
        stack=stack.resources.stack,
        made_at=iso_utc(now),
        alarms=read_alarm_changes(stack, planned_at, settled_at),
        metered=metered_by(stack, planned_at.date(), settled_at.date()),
        options=stack.options,
    )


def day_report(stack: DeployedStack, day: date, now: datetime) -> Report:
    """The report of a day (UTC): files of its hours in both lanes, and job runs that ended on it. ``now``: aware."""
    begin = datetime(day.year, day.month, day.day, tzinfo=UTC)
    figures = ManifestFigures(begin)
    for row in current_rows(stack.ledger, manifests_of_day(stack.s3, stack.resources.control_bucket, day)):
        if row.partition.date == str(day):
            figures.add(row)
    costs = cost_figures(stack.ledger.costs.of_days(day, day))
    return Report(
        title=f"{day:%A, %Y-%m-%d}",
        stack=stack.resources.stack,
        period=(
            "Files of the hours of this day that were recorded by the next day, by their current state; job runs that "
            "ended on this day."
        ),
        made_at=iso_utc(now),
        figures=figures,
        costs=costs,
        # The job runs of a night can end on several days.
        executions=executions_of(stack.ledger, costs.job_runs),
        alarms=read_alarm_changes(stack, begin, begin + ONE_DAY),
        metered=metered_by(stack, day, day),
        options=stack.options,
    )


MAX_CHANGES = 200
"""Only the latest changes: an alarm that comes and goes each minute would fill the page."""


def read_alarm_changes(stack: DeployedStack, first: datetime, last: datetime) -> tuple[AlarmChange, ...]:
    """Changes to and from ALARM between two instants (aware), latest first, of alarms that publish to the topic."""
    changes = (change for alarm in own_alarms(stack) for change in _history(stack, alarm["AlarmName"], first, last))
    return tuple(heapq.nlargest(MAX_CHANGES, changes, key=lambda change: change.at))


def _history(stack: DeployedStack, alarm: str, first: datetime, last: datetime) -> Iterator[AlarmChange]:
    """Yield the changes of one alarm: an account can have thousands of other alarms."""
    pages = stack.cloudwatch.get_paginator("describe_alarm_history").paginate(
        AlarmName=alarm,
        HistoryItemType="StateUpdate",
        StartDate=first,
        EndDate=last,
    )
    for item in (item for page in pages for item in page["AlarmHistoryItems"]):
        data = json.loads(item.get("HistoryData", "{}"))
        old, new = data.get("oldState", {}), data.get("newState", {})
        if data and "ALARM" not in (old.get("stateValue"), new.get("stateValue")):
            continue
        reason = new.get("stateReason", item.get("HistorySummary", ""))
        name = alarm.removeprefix(f"{stack.name}-")
        yield AlarmChange(name, iso_utc(item["Timestamp"]), new.get("stateValue", ""), reason)
