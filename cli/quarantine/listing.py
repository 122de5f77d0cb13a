"""``hybrid-router quarantine ls`` and ``show``: what is in the quarantine, counted and line by line."""

from __future__ import annotations

import base64
import json
from collections import Counter
from typing import TYPE_CHECKING, Any

import typer
from rich.console import Console
from rich.table import Table

from cli.exit_codes import ExitCode
from cli.quarantine.group_by import GroupBy
from cli.quarantine.records import COUNTED_LINES, WHOLE_FILE, RecordScan
from cli.quarantine.resubmitted import ResubmittedLines
from lake.printable import printable

if TYPE_CHECKING:
    from cli.deployed_stack import DeployedStack
    from cli.quarantine.records import QuarantineRecord, QuarantineSelection

SHOWN_CHARACTERS = 300
"""Of a line on the terminal; ``--json`` and ``export`` have all of it."""


NUMBERS = {"lines": "lines", "resubmitted": "given back", "files": "files"}
COLUMNS = {
    GroupBy.DATASET: ("dataset", "reason"),
    GroupBy.HOUR: ("dataset", "hour", "reason"),
    GroupBy.REASON: ("reason",),
    GroupBy.FILE: ("dataset", "hour", "file", "reason"),
}


def print_quarantine(
    stack: DeployedStack, selection: QuarantineSelection, by: GroupBy, limit: int, *, as_json: bool
) -> int:
    """Count the selected records by group; the exit code.

    Parameters
    ----------
    limit
        Maximum number of records that are counted.
    """
    columns = COLUMNS[by]
    lines: Counter[tuple[str, ...]] = Counter()
    given_back: Counter[tuple[str, ...]] = Counter()
    files: Counter[tuple[str, ...]] = Counter()
    resubmitted = ResubmittedLines(stack)
    scan = RecordScan(stack, selection, limit)
    for record in scan:
        group = tuple(_values(record)[column] for column in columns)
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
    _say_if_cut(scan)
    return ExitCode.FINE


def print_records(stack: DeployedStack, selection: QuarantineSelection, limit: int, *, as_json: bool) -> int:
    """Print the selected records, each with its place and reason; the exit code: 1 if there is none."""
    scan, resubmitted = RecordScan(stack, selection, limit), ResubmittedLines(stack)
    shown = list(scan)
    if as_json:
        bodies = [_as_json(record, resubmitted=resubmitted.include(record)) for record in shown]
        typer.echo(json.dumps({"records": bodies, "complete": scan.is_complete}, indent=1))
    else:
        for record in shown:
            _print_record(record, resubmitted=resubmitted.include(record))
        if not shown:
            typer.echo("the quarantine has nothing of this selection")
        _say_if_cut(scan)
    return ExitCode.FINE if shown else ExitCode.NOT_SO


def _values(record: QuarantineRecord) -> dict[str, str]:
    return {
        "dataset": record.partition.dataset,
        "hour": record.partition.stamp,
        "reason": record.reason,
        "file": record.source,
    }


def _print_groups(columns: tuple[str, ...], groups: list[dict[str, Any]]) -> None:
    table = Table(header_style="bold")
    for name in columns:
        table.add_column(name, overflow="fold")
    for title in NUMBERS.values():
        table.add_column(title, justify="right")
    for group in groups:
        table.add_row(*(printable(group[name]) for name in columns), *(f"{group[name]:,}" for name in NUMBERS))
    Console(highlight=False, markup=False).print(table)


def _as_json(record: QuarantineRecord, *, resubmitted: bool) -> dict[str, Any]:
    body: dict[str, Any] = {
        **_values(record),
        "kind": record.kind,
        "version": record.version,
        "manifest": record.manifest,
        "offset": record.offset,
        "length": record.length,
        "lines": record.count,
        "resubmitted": resubmitted,
    }
    if record.line is not None:
        try:
            body["line"] = record.line.decode()
        except UnicodeDecodeError:
            body["line_base64"] = base64.b64encode(record.line).decode()
    return body


def _print_record(record: QuarantineRecord, *, resubmitted: bool) -> None:
    place = f"{printable(record.source)}  version {record.version}  hour {record.partition.stamp}"
    reason = printable(record.reason)
    if record.kind == WHOLE_FILE:
        typer.echo(f"{place}\n  the whole file: {reason}")
    elif record.kind == COUNTED_LINES:
        end = record.offset + record.length
        typer.echo(f"{place}\n  {record.count:,} lines from byte {record.offset:,} to {end:,}: {reason}; only counted")
    else:
        note = "; given back, repaired" if resubmitted else ""
        typer.echo(f"{place}\n  byte {record.offset:,}, {record.length:,} bytes: {reason}{note}")
        typer.echo(f"  {_shown(record.line)}")


def _shown(line: bytes | None) -> str:
    if line is None:
        return "(too long to keep: it is in the input file only)"
    text = line.decode(errors="backslashreplace")
    rest = len(text) - SHOWN_CHARACTERS
    return printable(text) if rest <= 0 else f"{printable(text[:SHOWN_CHARACTERS])}... and {rest:,} more characters"


def _say_if_cut(scan: RecordScan) -> None:
    if not scan.is_complete:
        typer.echo("there is more: narrow the selection, or raise --limit")
