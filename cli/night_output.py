"""The documents of ``night`` and ``nights`` as pages for people."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import typer

from cli.format_values import (
    format_dollars,
    format_duration,
    format_instant,
    read_instant,
)
from cli.tables import print_table
from lake.printable import printable
from report.texts import format_size

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime
    from zoneinfo import ZoneInfo

UNKNOWN = "-"


def print_nights_document(document: Mapping[str, Any], zone: ZoneInfo, now: datetime) -> None:
    """One execution in a line; instants are on the wall clock of ``zone``."""
    clock = partial(_clock, zone=zone, now=now)
    rows = [
        (
            clock(night["startedAt"]),
            printable(night["execution"]),
            night["outcome"],
            _minutes(night["minutes"]),
            _number(night["files"]),
            _size(night["bytes"]),
            _number(night["rows"]),
            _number(night["quarantinedLines"]),
            _number(night["unreadableFilesTotal"]),
        )
        for night in document["nights"]
    ]
    if not rows:
        typer.echo("overnight has not converted anything in the last 90 days")
        return
    numbers = ("time", "files", "size", "rows", "quarantined", "unreadable")
    print_table(f"Nights, times in {zone.key}", ("began", "execution", "outcome"), numbers, rows)


def print_night_document(night: Mapping[str, Any], zone: ZoneInfo, now: datetime) -> None:
    """One execution on a page; instants are on the wall clock of ``zone``."""
    clock = partial(_clock, zone=zone, now=now)
    typer.echo(f"{printable(night['execution'])}: {night['outcome']}")
    typer.echo(f"  {clock(night['startedAt'])} to {clock(night['endedAt'])}, times in {zone.key}")
    for text in (night["message"], night["error"]):
        if text:
            typer.echo(f"  {printable(text)}")
    _print_plan(night, clock)
    _print_datasets(night)
    _print_failures(night)
    _print_runs(night, clock)
    if night["verdictDocument"]:
        typer.echo(f"verdict document: {night['verdictDocument']}")


def _print_plan(night: Mapping[str, Any], clock: partial[str]) -> None:
    plan, actual = night["plan"], night["actual"]
    rows = [
        ("began", clock(plan["start"]) if plan else UNKNOWN, clock(night["startedAt"])),
        ("ended", clock(plan["end"]) if plan else UNKNOWN, clock(night["endedAt"])),
        ("time", _minutes(plan["minutes"]) if plan else UNKNOWN, _minutes(actual["workMinutes"])),
        ("dollars", _dollars(plan["dollars"]) if plan else UNKNOWN, _dollars(actual["dollars"])),
        ("runs", _number(plan["runs"]) if plan else UNKNOWN, _number(actual["jobRuns"])),
        ("manifests", _number(plan["manifests"]) if plan else UNKNOWN, _number(night["manifestsDone"])),
    ]
    print_table("Plan and outcome", ("",), ("planned", "actual"), rows)


def _print_datasets(night: Mapping[str, Any]) -> None:
    rows = [
        (
            printable(item["dataset"]),
            _number(item["files"]),
            _size(item["bytes"]),
            _number(item["rows"]),
            _number(sum(item["rejects"].values())),
            _number(item["failed_files"]),
            _number(item["failed"]),
            _number(item["open"]),
        )
        for item in night["datasets"]
    ]
    if rows:
        numbers = ("files", "size", "rows", "quarantined lines", "unreadable files", "manifests failed", "open")
        print_table("Datasets", ("dataset",), numbers, rows)
    _print_omitted(night, "datasets")
    if night["rejectsByReason"]:
        reasons = sorted(night["rejectsByReason"].items(), key=lambda item: -item[1])
        typer.echo(f"quarantined lines: {', '.join(f'{lines:,} {printable(reason)}' for reason, lines in reasons)}")


def _print_failures(night: Mapping[str, Any]) -> None:
    for item in night["unreadableFiles"]:
        typer.echo(f"unreadable file {printable(item['uri'])}: {printable(item['reason'])}")
    _print_omitted(night, "unreadableFiles")
    for item in night["notDone"]:
        typer.echo(f"{item['state']} {item['manifest']} {item['partition']}: {printable(item['reason'] or 'waits')}")
    _print_omitted(night, "notDone")
    for item in night["damaged"]:
        typer.echo(f"damaged {printable(item['uri'])} {printable(item['problem'])}")
    _print_omitted(night, "damaged")


def _print_runs(night: Mapping[str, Any], clock: partial[str]) -> None:
    rows = [
        (
            run["jobRun"],
            run["engine"],
            clock(run["startedAt"]),
            _minutes(run["minutes"]),
            _dollars(run["dollars"]),
        )
        for run in night["jobRuns"]
    ]
    if rows:
        print_table("Job runs", ("job run", "engine", "began"), ("time", "dollars"), rows)
    for run in night["jobRuns"]:
        if run["log"]:
            typer.echo(f"log of {run['jobRun']}: {run['log']}")
    _print_omitted(night, "jobRuns")


def _print_omitted(night: Mapping[str, Any], name: str) -> None:
    if more := night["omitted"][name]:
        typer.echo(f"... and {more:,} more: pass a larger --limit")


def _clock(text: str | None, *, zone: ZoneInfo, now: datetime) -> str:
    return UNKNOWN if text is None else format_instant(read_instant(text), zone, now)


def _number(number: int | None) -> str:
    return UNKNOWN if number is None else f"{number:,}"


def _size(size: int | None) -> str:
    return UNKNOWN if size is None else format_size(size)


def _minutes(minutes: float | None) -> str:
    return UNKNOWN if minutes is None else format_duration(minutes * 60)


def _dollars(dollars: float | None) -> str:
    return UNKNOWN if dollars is None else format_dollars(dollars)
