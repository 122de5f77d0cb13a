"""``hybrid-router quarantine ls`` and ``show``: what is in the quarantine, counted or line by line."""

from __future__ import annotations

import base64
import json
from collections import Counter
from typing import Any

import typer

from cli.deployed_stack import DeployedStack
from cli.errors import ExitCode
from cli.quarantine.context import LineContext, read_contexts
from cli.quarantine.records import (
    COUNTED_LINES,
    WHOLE_FILE,
    QuarantineRecord,
    QuarantineSelection,
    RecordScan,
    ResubmittedLines,
)
from cli.terminal import print_table, shown_when_slow
from lake.texts import format_count, printable
from verify.elements import Line

NUMBERS = {"lines": "lines", "resubmitted": "given back", "files": "files"}
COLUMNS = {
    "dataset": ("dataset", "reason"),
    "hour": ("dataset", "hour", "reason"),
    "reason": ("reason",),
    "file": ("dataset", "hour", "file", "reason"),
}


def print_quarantine(
    stack: DeployedStack, selection: QuarantineSelection, by: str, limit: int, *, as_json: bool
) -> int:
    """Count the selected records by group; the exit code. ``limit``: maximum number of records that are counted."""
    columns = COLUMNS[by]
    lines: Counter[tuple[str, ...]] = Counter()
    given_back: Counter[tuple[str, ...]] = Counter()
    files: Counter[tuple[str, ...]] = Counter()
    resubmitted = ResubmittedLines(stack)
    scan = RecordScan(stack, selection, limit)
    for record in scan:
        group = tuple(values_of(record)[column] for column in columns)
        lines[group] += record.count
        given_back[group] += resubmitted.include(record)
        files[group] += record.kind == WHOLE_FILE
    groups = [
        {
            **dict(zip(columns, group, strict=True)),
            "lines": lines[group],
            "resubmitted": given_back[group],
            "files": files[group],
        }
        for group in sorted(lines)
    ]
    if as_json:
        totals = {"lines": lines.total(), "resubmitted": given_back.total(), "files": files.total()}
        totals["complete"] = scan.is_complete
        typer.echo(json.dumps({"groups": groups, **totals}, indent=1))
        return ExitCode.FINE
    if not groups:
        typer.echo("the quarantine has nothing of this selection")
        return ExitCode.FINE
    _print_groups(columns, groups)
    typer.echo(
        f"rejected lines: {lines.total():,}, given back: {given_back.total():,}, unreadable files: {files.total():,}"
    )
    say_if_cut(scan)
    return ExitCode.FINE


def values_of(record: QuarantineRecord) -> dict[str, str]:
    """What records are grouped by."""
    return {
        "dataset": record.partition.dataset,
        "hour": record.partition.stamp,
        "reason": record.reason,
        "file": record.source,
    }


def _print_groups(columns: tuple[str, ...], groups: list[dict[str, Any]]) -> None:
    rows = [
        (*(printable(group[name]) for name in columns), *(f"{group[name]:,}" for name in NUMBERS)) for group in groups
    ]
    print_table("", columns, tuple(NUMBERS.values()), rows)


def say_if_cut(scan: RecordScan) -> None:
    if not scan.is_complete:
        typer.echo("there is more: narrow the selection, or raise --limit")


SHOWN_CHARACTERS = 300
"""Maximum length of a line on the terminal; ``--json`` and ``export`` have all of it."""


def print_records(
    stack: DeployedStack, selection: QuarantineSelection, limit: int, context: int | None, *, as_json: bool
) -> int:
    """Print the selected records, each with its place and reason; the exit code: 1 if there is none.

    ``context``: lines of the input file to print before and after each rejected line, which is then numbered; None
    reads no input file.
    """
    scan, resubmitted = RecordScan(stack, selection, limit), ResubmittedLines(stack)
    shown = list(scan)
    with shown_when_slow("reading the input files ..."):
        contexts = {} if context is None else read_contexts(stack.s3, shown, context)
    if as_json:
        bodies = [
            _as_json(record, contexts.get(record.identity), resubmitted=resubmitted.include(record)) for record in shown
        ]
        typer.echo(json.dumps({"records": bodies, "complete": scan.is_complete}, indent=1))
    else:
        for record in shown:
            _print_record(record, contexts.get(record.identity), resubmitted=resubmitted.include(record))
        if not shown:
            typer.echo("the quarantine has nothing of this selection")
        say_if_cut(scan)
    return ExitCode.FINE if shown else ExitCode.NOT_SO


def _as_json(record: QuarantineRecord, context: LineContext | str | None, *, resubmitted: bool) -> dict[str, Any]:
    body: dict[str, Any] = {
        **values_of(record),
        "kind": record.kind,
        "version": record.version,
        "manifest": record.manifest,
        "offset": record.offset,
        "length": record.length,
        "lines": record.count,
        "resubmitted": resubmitted,
        **_text_as_json(record.line),
    }
    if isinstance(context, LineContext):
        body["line_number"] = context.number
        body["before"] = [_neighbour_as_json(line) for line in context.before]
        body["after"] = [_neighbour_as_json(line) for line in context.after]
    elif context is not None:
        body["no_context"] = context
    return body


def _neighbour_as_json(line: Line) -> dict[str, Any]:
    return {"line_number": line.number, "length": line.length, **_text_as_json(line.body)}


def _text_as_json(line: bytes | None) -> dict[str, str]:
    if line is None:
        return {}
    try:
        return {"line": line.decode()}
    except UnicodeDecodeError:
        return {"line_base64": base64.b64encode(line).decode()}


def _print_record(record: QuarantineRecord, context: LineContext | str | None, *, resubmitted: bool) -> None:
    place = f"{printable(record.source)}  version {record.version}  hour {record.partition.stamp}"
    reason = printable(record.reason)
    if record.kind == WHOLE_FILE:
        typer.echo(f"{place}\n  the whole file: {reason}")
    elif record.kind == COUNTED_LINES:
        end = record.offset + record.length
        lines = f"{format_count(record.count, 'line')} from byte {record.offset:,} to {end:,}"
        typer.echo(f"{place}\n  {lines}: {reason}; only counted")
    else:
        note = "; given back, repaired" if resubmitted else ""
        typer.echo(f"{place}\n  byte {record.offset:,}, {format_count(record.length, 'byte')}: {reason}{note}")
        _print_line(record.line, context)


def _print_line(line: bytes | None, context: LineContext | str | None) -> None:
    """The rejected line; with its context as ``grep -n -C`` prints it."""
    if not isinstance(context, LineContext):
        typer.echo(f"  {_shown(line)}")
        if context is not None:
            typer.echo(f"  (no line number: {printable(context)})")
        return
    for neighbour in context.before:
        typer.echo(f"  {neighbour.number}- {_shown(neighbour.body)}")
    typer.echo(f"  {context.number}: {_shown(line)}")
    for neighbour in context.after:
        typer.echo(f"  {neighbour.number}- {_shown(neighbour.body)}")


def _shown(line: bytes | None) -> str:
    if line is None:
        return "(too long to keep: it is in the input file only)"
    text = line.decode(errors="backslashreplace")
    rest = len(text) - SHOWN_CHARACTERS
    return (
        printable(text)
        if rest <= 0
        else f"{printable(text[:SHOWN_CHARACTERS])}... and {format_count(rest, 'more character')}"
    )
