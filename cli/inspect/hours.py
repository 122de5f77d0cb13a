"""``hybrid-router hours``: which hours of a dataset are complete."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime

import typer
from rich.console import Console

from cli.deployed_stack import DeployedStack, check_dataset_is_known
from cli.documents import DatasetHour, HourManifests, HoursDocument
from cli.errors import ExitCode
from cli.terminal import print_table
from lake.documents import format_json
from lake.errors import InvalidInputError
from lake.hours import ONE_HOUR, HourContents, read_hour, stamps_between, state_of_hour
from lake.layout import complete_marker_key
from lake.ledger import HourCounts, HourRow, HourState
from lake.manifest import Partition
from lake.texts import format_size
from router.requests.selection import parse_hours

MAX_HOURS = 24 * 366


@dataclass(frozen=True, slots=True)
class ShownHour:
    """One hour with its state, and what is in it."""

    row: HourRow
    state: HourState
    counts: HourCounts
    contents: HourContents
    """Empty for a complete hour, whose contents are not read."""


def print_hours(stack: DeployedStack, dataset: str, first: str, last: str, *, as_json: bool) -> int:
    """Print state and counts of each hour from ``first`` to ``last`` (UTC day or hour, inclusive).

    Returns the exit code: 1 unless all of them are complete.
    """
    check_dataset_is_known(stack, dataset)
    hours = read_hours(stack, dataset, first, last, datetime.now(UTC))
    if as_json:
        typer.echo(format_json(HoursDocument(dataset, tuple(_document(stack, hour) for hour in hours))))
    else:
        _print_hours(dataset, hours)
        for hour in hours:
            if hour.contents.failed_manifests:
                typer.echo(_format_failed(dataset, hour, stack.options))
    return ExitCode.FINE if all(hour.state is HourState.COMPLETE for hour in hours) else ExitCode.NOT_SO


def read_hours(stack: DeployedStack, dataset: str, first: str, last: str, now: datetime) -> list[ShownHour]:
    """The hours at ``now`` (aware).

    Of a complete hour only its own row is read; of another one the rows of its manifests.
    """
    begin, end = parse_hours({"from": first, "to": last})
    assert begin is not None
    assert end is not None
    if datetime.fromisoformat(end) - datetime.fromisoformat(begin) >= MAX_HOURS * ONE_HOUR:
        raise InvalidInputError(f"--from {first} --to {last} are more than a year: ask for fewer hours at a time")
    stamps = stamps_between(begin, end)
    rows = {stamp: HourRow(Partition.parse(f"{dataset}#{stamp}")) for stamp in stamps}
    rows |= {row.partition.stamp: row for row in stack.ledger.partitions.hours(dataset, begin, end)}
    with Console(stderr=True).status("reading the ledger") as status:
        shown = []
        for stamp, row in rows.items():
            status.update(f"reading the manifests of {stamp}")
            shown.append(_show(stack, row, now))
    return shown


def _show(stack: DeployedStack, row: HourRow, now: datetime) -> ShownHour:
    if row.is_settled:
        return ShownHour(row, HourState.COMPLETE, row.counts, HourContents())
    has_table = stack.ledger.tables.get(row.partition.dataset) is not None
    contents = read_hour(stack.ledger, row.partition, has_table=has_table) if row.touched else HourContents()
    may_show = contents.was_reprocessed and not has_table
    shows_replaced = may_show and stack.ledger.deletions.is_pending(row.partition)
    state = state_of_hour(row, contents, now, shows_replaced=shows_replaced)
    return ShownHour(row, state, contents.counts(), contents)


def _document(stack: DeployedStack, hour: ShownHour) -> DatasetHour:
    counts, row, contents = hour.counts, hour.row, hour.contents
    has_marker = row.is_settled and row.announced == row.revision
    return DatasetHour(
        snapshot=str(counts.snapshot) if counts.batch else None,
        hour=row.partition.stamp,
        state=hour.state.value,
        files=counts.files,
        bytes=counts.bytes,
        rows=counts.rows,
        quarantined_lines=counts.quarantined_lines,
        unreadable_files=counts.unreadable_files,
        manifests=HourManifests(counts.manifests, contents.failed, contents.open),
        failed_manifests=tuple(contents.failed_manifests),
        published_at=counts.published_at or None,
        revision=row.revision,
        marker=f"s3://{stack.resources.lake_bucket}/{complete_marker_key(row.partition)}" if has_marker else None,
    )


def _print_hours(dataset: str, hours: Iterable[ShownHour]) -> None:
    rows = (
        (
            hour.row.partition.stamp,
            hour.state.value,
            f"{hour.counts.files:,}",
            format_size(hour.counts.bytes),
            f"{hour.counts.rows:,}",
            f"{hour.counts.quarantined_lines:,}",
            f"{hour.counts.unreadable_files:,}",
        )
        for hour in hours
    )
    numbers = ("files", "size", "rows", "quarantined lines", "unreadable files")
    print_table(f"Hours of {dataset} (UTC)", ("hour", "state"), numbers, rows)


def _format_failed(dataset: str, hour: ShownHour, options: str) -> str:
    contents = hour.contents
    left = contents.failed - len(contents.failed_manifests)
    named, more = ", ".join(contents.failed_manifests), f" and {left:,} more" if left else ""
    return (
        f"{hour.row.partition.stamp} waits for manifests that are FAILED: {named}{more}; "
        f"'hybrid-router failures --dataset {dataset}{options}' says why and what to do"
    )
