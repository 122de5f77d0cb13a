"""``hybrid-router night`` and ``nights``: the outcome of executions of ``overnight``."""

from collections.abc import Callable, Mapping
from dataclasses import asdict, replace
from datetime import UTC, date, datetime
from functools import partial
from itertools import islice
from typing import Annotated, Any
from zoneinfo import ZoneInfo

import typer

from cli.change.executions import FINE_VERDICTS
from cli.commands import Answer, Limit
from cli.deployed_stack import DeployedStack
from cli.documents import NightDocument, NightLine, NightsDocument, NightVerdict
from cli.errors import ExitCode, NotFoundError
from cli.inspect.executions import (
    RUNNING,
    execution_arn,
    find_execution,
    format_progress,
    list_nights,
    planned_night,
    read_progress,
    read_runs,
    read_zone,
)
from cli.terminal import cells, print_table, working
from lake.documents import decode_found, find_document
from lake.layout import plan_summary_key, verdict_key
from lake.settings.declaration import is_date
from lake.texts import format_clock, format_dollars, format_duration, format_known, printable, read_instant

LAST = "last"
LISTS = {
    "datasets": "datasets",
    "unreadable_files": "unreadableFiles",
    "not_done": "notDone",
    "damaged": "damaged",
}
UNDECIDED = (RUNNING, "OPEN")
"""Outcomes that do not count as failures while the execution runs."""


def night_command(
    stack: DeployedStack,
    which: Annotated[str, typer.Argument(help="last, a local date such as 2026-11-20, or an execution's name.")] = LAST,
    limit: Limit = 100,
) -> Answer:
    """Show one execution of overnight: plan and outcome, datasets, failures, job runs; exit code 1 if it failed."""
    with working("reading the execution ..."):
        zone = read_zone(stack)
        execution = _find(stack, which, zone)
        if execution is None:
            named = "in the last 90 days" if which == LAST else f"named {which!r} or begun on such a day"
            raise NotFoundError(f"overnight has no execution {named}: 'hybrid-router nights' lists its executions")
        document = _night_document(stack, execution, limit)
    is_undecided = document.status == RUNNING and document.outcome in UNDECIDED
    code = ExitCode.OK if is_undecided or document.outcome in FINE_VERDICTS else ExitCode.NEGATIVE
    return Answer(document, lambda: _print_night(stack, document, zone), code)


def nights_command(stack: DeployedStack, limit: Limit = 20) -> Answer:
    """List the last executions of overnight with their outcome."""
    with working("reading the executions ..."):
        zone = read_zone(stack)
        document = NightsDocument(stack.name, tuple(islice(list_nights(stack), limit)))
    return Answer(document, lambda: _print_nights(document, zone))


def _night_document(stack: DeployedStack, execution: NightLine, limit: int) -> NightDocument:
    bucket, name = stack.resources.control_bucket, execution.execution
    summary = find_document(stack.s3, bucket, plan_summary_key(name), "forecast", "plannedAt", "manifestIds")
    document = find_document(stack.s3, bucket, verdict_key(name), "message", *LISTS.values(), "rejectsByReason")
    verdict = _verdict(stack, document, f"s3://{bucket}/{verdict_key(name)}") if document else None
    runs = read_runs(stack, name)
    message = document["message"] if document else _error(stack, execution)
    begun, ended = ([read_instant(getattr(run, name)) for run in runs] for name in ("started_at", "ended_at"))
    lists = {member: getattr(verdict, member) for member in LISTS} if verdict else {}
    return NightDocument(
        **{name: getattr(execution, name) for name in NightLine.__dataclass_fields__},
        message=message and stack.runnable(message),
        plan=planned_night(summary, f"s3://{bucket}/{plan_summary_key(name)}"),
        progress=None if verdict or summary is None else read_progress(stack, summary),
        dollars=round(sum(run.dollars for run in runs), 6) if runs else None,
        work_minutes=round((max(ended) - min(begun)).total_seconds() / 60, 1) if runs else None,
        run_count=len(runs),
        job_runs=tuple(runs[:limit]),
        verdict=replace(verdict, **{member: found[:limit] for member, found in lists.items()}) if verdict else None,
        omitted=sum(max(len(entries) - limit, 0) for entries in (runs, *lists.values())),
    )


def _verdict(stack: DeployedStack, document: Mapping[str, Any], uri: str) -> NightVerdict:
    lists = {name: document[member] for name, member in LISTS.items()}
    found = decode_found(NightVerdict, {"rejects_by_reason": document["rejectsByReason"], **lists}, uri)
    return replace(
        found,
        unreadable_files=tuple(replace(item, reason=stack.runnable(item.reason)) for item in found.unreadable_files),
        not_done=tuple(replace(item, reason=stack.runnable(item.reason or "")) for item in found.not_done),
    )


def _find(stack: DeployedStack, which: str, zone: ZoneInfo) -> NightLine | None:
    if which == LAST:
        return next(list_nights(stack), None)
    if not is_date(which):
        return find_execution(stack, which)
    day = date.fromisoformat(which)
    for night in list_nights(stack):
        began = read_instant(str(night.started_at)).astimezone(zone).date()
        if began <= day:
            return night if began == day else None
    return None


def _error(stack: DeployedStack, execution: NightLine) -> str | None:
    if execution.status not in ("FAILED", "TIMED_OUT", "ABORTED"):
        return None
    found = stack.sfn.describe_execution(executionArn=execution_arn(stack, execution.execution))
    return ": ".join(found[name] for name in ("error", "cause") if found.get(name)) or execution.status


UNKNOWN = "-"


def _print_nights(document: NightsDocument, zone: ZoneInfo) -> None:
    clock = _clock(zone)
    rows = [
        (
            clock(night.started_at),
            printable(night.execution),
            night.outcome,
            _duration(night),
            *cells(night, "files", "bytes", "rows", "quarantined_lines", "unreadable_files"),
        )
        for night in document.nights
    ]
    if not rows:
        typer.echo("overnight has not converted anything in the last 90 days")
        return
    numbers = ("time", "files", "size", "rows", "quarantined", "unreadable")
    print_table(f"Nights, times in {zone.key}", ("began", "execution", "outcome"), numbers, rows)


def _print_night(stack: DeployedStack, night: NightDocument, zone: ZoneInfo) -> None:
    clock = _clock(zone)
    typer.echo(f"{printable(night.execution)}: {night.outcome}")
    typer.echo(f"  {clock(night.started_at)} to {clock(night.ended_at)}, times in {zone.key}")
    if night.message:
        typer.echo(f"  {printable(night.message)}")
    if night.progress:
        typer.echo(f"  {format_progress(night.progress)}")
    _print_plan(night, clock)
    if night.verdict is not None:
        _print_verdict(night.verdict)
    _print_runs(night, clock)
    if night.omitted:
        typer.echo(f"... and {night.omitted:,} more: pass a larger --limit")
    if night.verdict is not None:
        typer.echo(f"verdict document: s3://{stack.resources.control_bucket}/{verdict_key(night.execution)}")


def _print_plan(night: NightDocument, clock: Callable[[str | None], str]) -> None:
    plan = {} if night.plan is None else asdict(night.plan)
    rows = [
        ("began", clock(plan.get("start")), clock(night.started_at)),
        ("ended", clock(plan.get("end")), clock(night.ended_at)),
        ("time", _minutes(plan.get("minutes")), _minutes(night.work_minutes)),
        ("dollars", _dollars(plan.get("dollars")), _dollars(night.dollars)),
        ("runs", _number(plan.get("runs")), _number(night.run_count)),
        ("manifests", _number(plan.get("manifests")), _number(night.manifests_done)),
    ]
    print_table("Plan and outcome", ("",), ("planned", "actual"), rows)


def _print_verdict(verdict: NightVerdict) -> None:
    rows = [
        (
            printable(item.dataset),
            *cells(item, "files", "bytes", "rows"),
            f"{sum(item.rejects.values()):,}",
            *cells(item, "failed_files", "failed", "open"),
        )
        for item in verdict.datasets
    ]
    if rows:
        numbers = ("files done", "size done", "rows", "quarantined", "unreadable", "manifests failed", "open")
        print_table("Datasets", ("dataset",), numbers, rows)
    if verdict.rejects_by_reason:
        reasons = sorted(verdict.rejects_by_reason.items(), key=lambda item: -item[1])
        typer.echo(f"quarantined lines: {', '.join(f'{lines:,} {printable(reason)}' for reason, lines in reasons)}")
    for file in verdict.unreadable_files:
        typer.echo(f"unreadable file {printable(file.uri)}: {printable(file.reason)}")
    for item in verdict.not_done:
        typer.echo(printable(f"{item.state} {item.manifest} {item.partition}: {item.reason or 'waits'}"))
    for found in verdict.damaged:
        typer.echo(f"damaged {printable(found.uri)} {printable(found.problem)}")


def _print_runs(night: NightDocument, clock: Callable[[str | None], str]) -> None:
    rows = [
        (run.job_run, run.state, run.engine, clock(run.started_at), _minutes(run.minutes), _dollars(run.dollars))
        for run in night.job_runs
    ]
    if rows:
        print_table("Job runs", ("job run", "end", "engine", "began"), ("time", "dollars"), rows)
    for run in night.job_runs:
        if run.reason:
            typer.echo(f"{run.state} {run.job_run}: {printable(run.reason)}")
        typer.echo(f"log of {run.job_run}: {run.log}")


def _clock(zone: ZoneInfo) -> Callable[[str | None], str]:
    return partial(format_known, partial(format_clock, zone=zone, now=datetime.now(UTC)), unknown=UNKNOWN)


def _duration(night: NightLine) -> str:
    if night.started_at is None or night.ended_at is None:
        return UNKNOWN
    return format_duration((read_instant(night.ended_at) - read_instant(night.started_at)).total_seconds())


_number = partial(format_known, "{:,}".format, unknown=UNKNOWN)
_minutes = partial(format_known, lambda minutes: format_duration(minutes * 60), unknown=UNKNOWN)
_dollars = partial(format_known, format_dollars, unknown=UNKNOWN)
