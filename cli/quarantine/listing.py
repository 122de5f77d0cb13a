"""``hybrid-router quarantine ls``: what is in the quarantine, counted."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import typer

from cli.deployed_stack import DeployedStack
from cli.exit_codes import ExitCode
from cli.quarantine.group_by import GroupBy
from cli.quarantine.records import WHOLE_FILE, QuarantineRecord, QuarantineSelection, RecordScan
from cli.quarantine.resubmitted import ResubmittedLines
from cli.tables import print_table
from lake.texts import printable

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
    """Say so when a limit has left records out."""
    if not scan.is_complete:
        typer.echo("there is more: narrow the selection, or raise --limit")
