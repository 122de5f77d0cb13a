"""``hybrid-router hours``: which hours of a dataset are complete."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Annotated

import typer

from cli.commands import FROM, TO, Answer
from cli.deployed_stack import DeployedStack, known_dataset
from cli.documents import DatasetHour, HourManifests, HoursDocument
from cli.errors import ExitCode
from cli.terminal import cells, print_table, working
from lake.errors import InvalidInputError
from lake.hours import ONE_HOUR, HourContents, read_hour, stamps_between, state_of_hour
from lake.layout import complete_marker_key
from lake.ledger import HourRow, HourState
from lake.manifest import Partition
from lake.texts import format_count
from router.requests.selection import parse_hours

MAX_HOURS = 24 * 366


def hours_command(
    stack: DeployedStack,
    dataset: Annotated[str, typer.Option(help="Name of the dataset.")],
    first: Annotated[str, FROM],
    last: Annotated[str, TO],
) -> Answer:
    """Show which hours of a dataset are complete, with counts; exit code 1 if rows are still to come or missing."""
    known_dataset(stack, dataset)
    with working("reading the ledger ..."):
        hours = _read_hours(stack, dataset, first, last, datetime.now(UTC))
    code = ExitCode.OK if all(hour.state == "complete" for hour in hours) else ExitCode.NEGATIVE
    return Answer(HoursDocument(dataset, hours), lambda: _print_hours(dataset, hours, stack.options), code)


def _read_hours(stack: DeployedStack, dataset: str, first: str, last: str, now: datetime) -> tuple[DatasetHour, ...]:
    """Return the hours at ``now`` (aware).

    For a complete hour only its own row is read, for another hour its manifests' rows.
    """
    begin, end = parse_hours({"from": first, "to": last})
    assert begin is not None
    assert end is not None
    if datetime.fromisoformat(end) - datetime.fromisoformat(begin) >= MAX_HOURS * ONE_HOUR:
        raise InvalidInputError(f"--from {first} --to {last} are more than a year: pass a shorter range")
    # A file in a collection does not touch its hour. Collections are read first: a division touches it, then ends.
    collected = {row.id.hour for row in stack.ledger.collections.open()}
    stamps = stamps_between(begin, end)
    rows = {stamp: HourRow(Partition.parse(f"{dataset}#{stamp}")) for stamp in stamps}
    rows |= {row.partition.stamp: row for row in stack.ledger.partitions.hours(dataset, begin, end)}
    has_table = stack.has_table(dataset)
    return tuple(
        _read_hour(stack, row, now, is_empty=not row.touched and stamp not in collected, has_table=has_table)
        for stamp, row in rows.items()
    )


def _read_hour(stack: DeployedStack, row: HourRow, now: datetime, *, is_empty: bool, has_table: bool) -> DatasetHour:
    state, counts, contents = HourState.COMPLETE, row.counts, HourContents()
    if not row.is_settled:
        if not is_empty:
            contents = read_hour(stack.ledger, row.partition, has_table=has_table)
        may_show = contents.was_reprocessed and not has_table
        shows_replaced = may_show and stack.ledger.deletions.is_pending(row.partition)
        state, counts = state_of_hour(row, contents, now, shows_replaced=shows_replaced), contents.counts()
    has_marker = row.is_settled and row.announced == row.revision
    return DatasetHour(
        hour=row.partition.stamp,
        state=state.value,
        files=counts.files,
        bytes=counts.bytes,
        rows=counts.rows,
        quarantined_lines=counts.quarantined_lines,
        unreadable_files=counts.unreadable_files,
        manifests=HourManifests(counts.manifests, contents.failed, contents.open, contents.not_in_table),
        published_at=counts.published_at or None,
        revision=row.revision,
        marker=f"s3://{stack.resources.lake_bucket}/{complete_marker_key(row.partition)}" if has_marker else None,
        snapshot=str(counts.snapshot) if counts.batch and not contents.not_in_table else None,
    )


def _print_hours(dataset: str, hours: Sequence[DatasetHour], options: str) -> None:
    names = ("files", "bytes", "rows", "quarantined_lines", "unreadable_files")
    rows = ((hour.hour, hour.state, *cells(hour, *names)) for hour in hours)
    numbers = ("files", "size", "rows", "quarantined lines", "unreadable files")
    print_table(f"Hours of {dataset} (UTC)", ("hour", "state"), numbers, rows)
    for hour in hours:
        if failed := hour.manifests.failed:
            typer.echo(
                f"{hour.hour} waits for {format_count(failed, 'FAILED manifest')}: "
                f"'hybrid-router failures --dataset {dataset}{options}' shows why and what to do"
            )
        if waiting := hour.manifests.not_in_table:
            typer.echo(
                f"{hour.hour} waits for the Iceberg table, which does not show "
                f"{format_count(waiting, 'published manifest')} yet: 'hybrid-router tables status {dataset}{options}' "
                "shows whether it is behind or stopped"
            )
