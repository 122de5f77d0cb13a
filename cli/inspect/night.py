"""``hybrid-router night`` and ``nights``: what executions of ``overnight`` have come to."""

from __future__ import annotations

from datetime import UTC, date, datetime
from functools import partial
from itertools import islice
from typing import Any
from zoneinfo import ZoneInfo

import typer

from cli.change.executions import FINE_VERDICTS
from cli.deployed_stack import DeployedStack
from cli.documents import (
    ManifestNotDone,
    NightDataset,
    NightDocument,
    NightLine,
    NightsDocument,
    OmittedOfNight,
)
from cli.errors import ExitCode, NotFoundError
from cli.inspect.executions import (
    Execution,
    actual_of,
    execution_arn,
    find_execution,
    format_progress,
    list_executions,
    planned_night,
    read_progress,
    read_runs,
    read_schedule,
)
from cli.terminal import print_table, working
from lake.bills import MICRO
from lake.documents import find_document, format_json
from lake.errors import InvalidInputError
from lake.layout import plan_summary_key, verdict_key
from lake.texts import format_clock, format_dollars, format_duration, format_size, printable, read_instant
from lake.time import iso_utc
from router.settle.published import DamagedObject, UnreadableFile

LAST = "last"
NOT_FAILED = (*FINE_VERDICTS, "RUNNING", "OPEN")


def print_night(stack: DeployedStack, which: str, limit: int, *, as_json: bool) -> int:
    """Print one execution: ``last``, the newest that began on a date, or a name; the exit code.

    It is 1 when it has failed. ``limit`` is the maximum number of entries of each list.
    """
    now = datetime.now(UTC)
    with working("reading the execution ..."):
        zone = read_schedule(stack).zone
        execution = _find(stack, which, zone)
        document = None if execution is None else night_document(stack, execution, limit)
    if document is None:
        raise NotFoundError(_unknown(which))
    if as_json:
        typer.echo(format_json(document))
    else:
        print_night_document(document, zone, now)
    return ExitCode.FINE if document.outcome in NOT_FAILED else ExitCode.NOT_SO


def print_nights(stack: DeployedStack, limit: int, *, as_json: bool) -> int:
    """Print the newest executions, at most ``limit``, one in a line; the exit code."""
    with working("reading the executions ..."):
        zone = read_schedule(stack).zone
        found = islice((item for item in list_executions(stack) if item.is_night), limit)
        document = NightsDocument(stack.name, tuple(NightLine(**_fields(execution)) for execution in found))
    if as_json:
        typer.echo(format_json(document))
    else:
        print_nights_document(document, zone, datetime.now(UTC))
    return ExitCode.FINE


def night_document(stack: DeployedStack, execution: Execution, limit: int) -> NightDocument:
    bucket = stack.resources.control_bucket
    summary = find_document(stack.s3, bucket, plan_summary_key(execution.name), "forecast", "manifestIds")
    verdict = find_document(stack.s3, bucket, verdict_key(execution.name)) or {}
    runs = read_runs(stack, execution)
    names = ("datasets", "unreadableFiles", "notDone", "damaged")
    datasets, unreadable, not_done, damaged = (verdict.get(name, []) for name in names)
    lists = (datasets, unreadable, not_done, damaged, runs)
    return NightDocument(
        **_fields(execution),
        message=_runnable(stack, verdict.get("message")),
        error=_error(stack, execution),
        plan=planned_night(summary),
        max_concurrency=summary["maxConcurrency"] if summary else None,
        progress=None if verdict or summary is None else read_progress(stack, summary),
        actual=actual_of(runs, verdict),
        rejects_by_reason=verdict.get("rejectsByReason", {}),
        datasets=tuple(NightDataset(**item) for item in datasets[:limit]),
        unreadable_files=tuple(UnreadableFile(**item) for item in unreadable[:limit]),
        not_done=tuple(
            ManifestNotDone(**{**item, "reason": _runnable(stack, item.get("reason"))}) for item in not_done[:limit]
        ),
        damaged=tuple(DamagedObject(**item) for item in damaged[:limit]),
        job_runs=tuple(runs[:limit]),
        omitted=OmittedOfNight(*(max(len(entries) - limit, 0) for entries in lists)),
        verdict_document=f"s3://{bucket}/{verdict_key(execution.name)}" if verdict else None,
    )


def _runnable(stack: DeployedStack, text: str | None) -> str | None:
    return text and stack.runnable(text)


def _fields(execution: Execution) -> dict[str, Any]:
    """The fields of ``NightLine``."""
    verdict, plan = execution.verdict or {}, execution.plan or {}
    started, ended = execution.started_at, execution.ended_at
    planned = plan.get("micro_dollars")
    return {
        "execution": execution.name,
        "outcome": execution.outcome,
        "started_at": iso_utc(started) if started else None,
        "ended_at": iso_utc(ended) if ended else None,
        "minutes": round((ended - started).total_seconds() / 60, 1) if started and ended else None,
        "engine": plan.get("engine"),
        "files": plan.get("files"),
        "bytes": plan.get("bytes"),
        "manifests": plan.get("manifests"),
        "manifests_done": verdict.get("done"),
        "rows": verdict.get("rows"),
        "quarantined_lines": verdict.get("rejects"),
        "unreadable_files_total": verdict.get("failed_files"),
        "planned_dollars": None if planned is None else planned / MICRO,
    }


def _find(stack: DeployedStack, which: str, zone: ZoneInfo) -> Execution | None:
    if which == LAST:
        return next((item for item in list_executions(stack) if item.is_night), None)
    try:
        day = date.fromisoformat(which)
    except ValueError:
        if which[:2].isdigit() and len(which) == len("2026-11-20") and which.count("-") == 2:
            raise InvalidInputError(f"{which!r} is not a valid date: pass one such as 2026-11-20") from None
        return find_execution(stack, which)
    for execution in list_executions(stack):
        if execution.started_at is None or not execution.is_night:
            continue
        began = execution.started_at.astimezone(zone).date()
        if began <= day:
            return execution if began == day else None
    return None


def _unknown(which: str) -> str:
    if which == LAST:
        return (
            "overnight has not converted anything in the last 90 days: run 'hybrid-router status' to see when it will"
        )
    advice = "run 'hybrid-router nights' to see which there are"
    return f"no execution of overnight is named {printable(which)} or began on such a day: {advice}"


def _error(stack: DeployedStack, execution: Execution) -> str | None:
    """Why the execution ended without a verdict."""
    if execution.verdict is not None or execution.status not in ("FAILED", "TIMED_OUT", "ABORTED"):
        return None
    found = stack.sfn.describe_execution(executionArn=execution_arn(stack, execution.name))
    return ": ".join(found[name] for name in ("error", "cause") if found.get(name)) or execution.status


UNKNOWN = "-"


def print_nights_document(document: NightsDocument, zone: ZoneInfo, now: datetime) -> None:
    """One execution in a line; instants are on the wall clock of ``zone``."""
    clock = partial(_clock, zone=zone, now=now)
    rows = [
        (
            clock(night.started_at),
            printable(night.execution),
            night.outcome,
            _minutes(night.minutes),
            _number(night.files),
            _size(night.bytes),
            _number(night.rows),
            _number(night.quarantined_lines),
            _number(night.unreadable_files_total),
        )
        for night in document.nights
    ]
    if not rows:
        typer.echo("overnight has not converted anything in the last 90 days")
        return
    numbers = ("time", "files", "size", "rows", "quarantined", "unreadable")
    print_table(f"Nights, times in {zone.key}", ("began", "execution", "outcome"), numbers, rows)


def print_night_document(night: NightDocument, zone: ZoneInfo, now: datetime) -> None:
    """One execution on a page; instants are on the wall clock of ``zone``."""
    clock = partial(_clock, zone=zone, now=now)
    typer.echo(f"{printable(night.execution)}: {night.outcome}")
    typer.echo(f"  {clock(night.started_at)} to {clock(night.ended_at)}, times in {zone.key}")
    for text in (night.message, night.error):
        if text:
            typer.echo(f"  {printable(text)}")
    if night.progress:
        typer.echo(f"  {format_progress(night.progress)}")
    _print_plan(night, clock)
    _print_datasets(night)
    _print_failures(night)
    _print_runs(night, clock)
    if night.verdict_document:
        typer.echo(f"verdict document: {night.verdict_document}")


def _print_plan(night: NightDocument, clock: partial[str]) -> None:
    plan, actual = night.plan, night.actual
    rows = [
        ("began", clock(plan.start) if plan else UNKNOWN, clock(night.started_at)),
        ("ended", clock(plan.end) if plan else UNKNOWN, clock(night.ended_at)),
        ("time", _minutes(plan.minutes) if plan else UNKNOWN, _minutes(actual.work_minutes)),
        ("dollars", _dollars(plan.dollars) if plan else UNKNOWN, _dollars(actual.dollars)),
        ("runs", _number(plan.runs) if plan else UNKNOWN, _number(actual.job_runs)),
        ("manifests", _number(plan.manifests) if plan else UNKNOWN, _number(night.manifests_done)),
    ]
    print_table("Plan and outcome", ("",), ("planned", "actual"), rows)


def _print_datasets(night: NightDocument) -> None:
    rows = [
        (
            printable(item.dataset),
            _number(item.files),
            _size(item.bytes),
            _number(item.rows),
            _number(sum(item.rejects.values())),
            _number(item.failed_files),
            _number(item.failed),
            _number(item.open),
        )
        for item in night.datasets
    ]
    if rows:
        numbers = (
            "files done",
            "size done",
            "rows",
            "quarantined lines",
            "unreadable files",
            "manifests failed",
            "open",
        )
        print_table("Datasets", ("dataset",), numbers, rows)
    _print_omitted(night.omitted.datasets)
    if night.rejects_by_reason:
        reasons = sorted(night.rejects_by_reason.items(), key=lambda item: -item[1])
        typer.echo(f"quarantined lines: {', '.join(f'{lines:,} {printable(reason)}' for reason, lines in reasons)}")


def _print_failures(night: NightDocument) -> None:
    for file in night.unreadable_files:
        typer.echo(f"unreadable file {printable(file.uri)}: {printable(file.reason)}")
    _print_omitted(night.omitted.unreadable_files)
    for item in night.not_done:
        typer.echo(f"{item.state} {item.manifest} {item.partition}: {printable(item.reason or 'waits')}")
    _print_omitted(night.omitted.not_done)
    for damaged in night.damaged:
        typer.echo(f"damaged {printable(damaged.uri)} {printable(damaged.problem)}")
    _print_omitted(night.omitted.damaged)


def _print_runs(night: NightDocument, clock: partial[str]) -> None:
    rows = [
        (
            run.job_run,
            run.state,
            run.engine,
            clock(run.started_at),
            _minutes(run.minutes),
            _dollars(run.dollars),
        )
        for run in night.job_runs
    ]
    if rows:
        print_table("Job runs", ("job run", "end", "engine", "began"), ("time", "dollars"), rows)
    for run in night.job_runs:
        if run.reason:
            typer.echo(f"{run.state} {run.job_run}: {printable(run.reason)}")
        if run.log:
            typer.echo(f"log of {run.job_run}: {run.log}")
    _print_omitted(night.omitted.job_runs)


def _print_omitted(more: int) -> None:
    if more:
        typer.echo(f"... and {more:,} more: pass a larger --limit")


def _clock(text: str | None, *, zone: ZoneInfo, now: datetime) -> str:
    return UNKNOWN if text is None else format_clock(read_instant(text), zone, now)


def _number(number: int | None) -> str:
    return UNKNOWN if number is None else f"{number:,}"


def _size(size: int | None) -> str:
    return UNKNOWN if size is None else format_size(size)


def _minutes(minutes: float | None) -> str:
    return UNKNOWN if minutes is None else format_duration(minutes * 60)


def _dollars(dollars: float | None) -> str:
    return UNKNOWN if dollars is None else format_dollars(dollars)
