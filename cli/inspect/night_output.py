"""The documents of ``night`` and ``nights`` as pages for people."""

from __future__ import annotations

from datetime import datetime
from functools import partial
from zoneinfo import ZoneInfo

import typer

from cli.documents import NightDocument, NightsDocument
from cli.inspect.night_progress import format_progress
from cli.tables import print_table
from lake.texts import (
    format_clock,
    format_dollars,
    format_duration,
    format_size,
    printable,
    read_instant,
)

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
