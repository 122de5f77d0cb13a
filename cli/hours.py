"""``hybrid-router hours``: which hours of a dataset are complete."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import typer
from rich.console import Console
from rich.table import Table

from cli.exit_codes import ExitCode
from lake.errors import InvalidInputError
from lake.printable import printable
from report.collect import current_rows, manifests_since
from report.hours import HourState, hours_between
from report.texts import format_size
from router.selection import parse_hours

if TYPE_CHECKING:
    from collections.abc import Iterable

    from cli.deployed_stack import DeployedStack
    from report.hours import Hour

MAX_HOURS = 24 * 366


def print_hours(stack: DeployedStack, dataset: str, first: str, last: str, *, as_json: bool) -> int:
    """Print state and counts of each hour from ``first`` to ``last`` (UTC day or hour, inclusive).

    Returns the exit code: 1 unless all of them are complete, or if the ledger does not know the dataset.

    Raises
    ------
    InvalidInputError
        A time is not valid, or there are too many hours.
    """
    if not stack.ledger.datasets.is_known(dataset):
        names = ", ".join(stack.ledger.datasets.names())
        known = f"pass one of {names}" if names else "no file has arrived yet"
        typer.echo(f"the ledger has no dataset {printable(dataset)!r}: {known}", err=True)
        return ExitCode.NOT_SO
    now = datetime.now(UTC)
    hours = read_hours(stack, dataset, first, last)
    if as_json:
        body = {"dataset": dataset, "hours": [_fields(hour, now) for hour in hours]}
        typer.echo(json.dumps(body, indent=1))
    else:
        Console(highlight=False).print(_table(dataset, hours, now))
    return ExitCode.FINE if all(hour.state(now) is HourState.COMPLETE for hour in hours) else ExitCode.NOT_SO


def read_hours(stack: DeployedStack, dataset: str, first: str, last: str) -> list[Hour]:
    """The hours with what the current rows of their manifests say; a manifest can be made long after its hour."""
    begin, end = parse_hours({"from": first, "to": last})
    assert begin is not None
    assert end is not None
    hours = hours_between(begin, end)
    if len(hours) > MAX_HOURS:
        raise InvalidInputError(f"--from {first} --to {last} are more than a year: ask for fewer hours at a time")
    made = manifests_since(stack.s3, stack.resources.control_bucket, begin)
    with Console(stderr=True).status("reading the ledger"):
        for row, _ in current_rows(stack.ledger, made):
            if row.partition.dataset == dataset and row.partition.stamp in hours:
                hours[row.partition.stamp].add(row)
    return list(hours.values())


def _fields(hour: Hour, now: datetime) -> dict[str, Any]:
    counts = hour.counts
    return {
        "hour": hour.stamp,
        "state": hour.state(now).value,
        "files": counts.files,
        "bytes": counts.bytes,
        "rows": counts.rows,
        "quarantinedLines": counts.rejects.total(),
        "unreadableFiles": counts.failed_files,
        "manifests": {"done": counts.done, "failed": counts.failed, "open": counts.open},
        "publishedAt": hour.published_at or None,
    }


def _table(dataset: str, hours: Iterable[Hour], now: datetime) -> Table:
    """It fits a terminal of 80 characters; ``--json`` has the rest."""
    title = f"Hours of {dataset} (UTC)"
    table = Table(
        title=title, title_justify="left", header_style="bold", box=None, pad_edge=False, padding=(0, 2, 0, 0)
    )
    for name in ("hour", "state"):
        table.add_column(name, no_wrap=True)
    for name in ("files", "size", "rows", "quarantined lines", "unreadable files"):
        table.add_column(name, justify="right")
    for hour in hours:
        counts = hour.counts
        cells = [f"{counts.files:,}", format_size(counts.bytes), f"{counts.rows:,}"]
        cells += [f"{counts.rejects.total():,}", f"{counts.failed_files:,}"]
        table.add_row(hour.stamp, hour.state(now), *cells)
    return table
