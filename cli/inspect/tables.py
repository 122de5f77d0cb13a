"""``hybrid-router tables status``: how far Iceberg tables follow the ledger; and restore and rebuild."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import Annotated

import typer

from cli.commands import Answer, Dataset
from cli.deployed_stack import DeployedStack, known_dataset
from cli.documents import TablesDocument, TableState
from cli.errors import ExitCode
from cli.terminal import print_table
from lake.errors import InvalidInputError
from lake.ledger import TableRow
from lake.ledger.table import batches_of
from lake.texts import format_count, printable

MAX_COUNTED = 10_000
"""Maximum number of generations that are counted for each table."""
LATE = timedelta(minutes=15)
"""Time after the next batch is due, as in the alarm TablesBehind, which is evaluated after the batches."""

NOT_CREATED = "the next publish makes the table and fills it with all hours, or run 'hybrid-router tables rebuild {}'"


def tables_status_command(
    stack: DeployedStack,
    dataset: Annotated[str | None, typer.Argument(help="Only the table of this dataset.")] = None,
) -> Answer:
    """Show the Iceberg tables, what waits for them, and why one is stopped; exit code 1 unless all are current."""
    if dataset is not None:
        known_dataset(stack, dataset)
        if not stack.has_table(dataset):
            raise InvalidInputError(f'no rule of [[datasets]] gives {dataset} table = "iceberg": deploy one that does')
    now = datetime.now(UTC)
    tables = tuple(_states(stack, dataset, now))
    code = ExitCode.OK if all(item.state == "current" for item in tables) else ExitCode.NEGATIVE
    return Answer(TablesDocument(tables), lambda: _print(tables), code)


def _print(tables: Sequence[TableState]) -> None:
    if not tables:
        typer.echo('no dataset that was converted has a rule with table = "iceberg"')
        return
    rows = [
        (item.dataset, item.state, str(item.batch), str(item.waiting), f"{item.behind_minutes:g}") for item in tables
    ]
    print_table("Iceberg tables", ["dataset", "state"], ["batch", "waiting", "minutes"], rows)
    for item in tables:
        if item.stopped:
            typer.echo(printable(f"{item.dataset}: {item.stopped}"))


def _states(stack: DeployedStack, dataset: str | None, now: datetime) -> Iterator[TableState]:
    """Return the tables that are kept up to date, without tables of datasets that were moved back to Hive.

    A converted dataset that was moved to Iceberg and has published nothing since has no table, and is behind.
    """
    if not stack.outputs.tables:
        return
    names, settings = stack.ledger.datasets.names() if dataset is None else iter([dataset]), stack.settings()
    late = timedelta(seconds=settings.tables.commit_seconds) + LATE
    for batch in batches_of(filter(settings.has_table, names)):
        rows = {row.dataset: row for row in stack.ledger.tables.get_many(batch)}
        for name in batch:
            state = _state(stack, rows.get(name, TableRow(name, "", unlisted=True)), now, late)
            if name in rows or state.waiting:
                yield state
            elif (found := stack.ledger.datasets.get(name)) is not None and found.measured.input_bytes:
                yield replace(state, stopped=stack.runnable(NOT_CREATED.format(name)))


def _state(stack: DeployedStack, row: TableRow, now: datetime, late: timedelta) -> TableState:
    waiting, oldest, fills = 0, now, row.unlisted
    for entry in islice(stack.ledger.tables.outbox(row.dataset), MAX_COUNTED):
        waiting += 1
        # A new table must still be filled.
        fills = fills or entry.is_hour
        oldest = min(oldest, datetime.fromisoformat(entry.listed_at))
    is_behind = fills or now - oldest >= late
    return TableState(
        dataset=row.dataset,
        state="stopped" if row.stopped else "behind" if is_behind else "current",
        batch=row.applied,
        waiting=waiting,
        behind_minutes=round((now - oldest).total_seconds() / 60, 1),
        stopped=row.stopped and stack.runnable(row.stopped),
    )


def tables_restore_command(stack: DeployedStack, dataset: Dataset) -> int:
    """Go back to the last batch: undo what other writers have done to the rows of a table."""
    known_dataset(stack, dataset)
    answer = stack.change_table({"restore": dataset})
    typer.echo(f"{dataset}: it shows the rows of batch {answer['batch']} again; later publishes follow")
    return ExitCode.OK


def tables_rebuild_command(stack: DeployedStack, dataset: Dataset) -> int:
    """Build a table again from the ledger, or for the first time over what is published already."""
    known_dataset(stack, dataset)
    answer = stack.change_table({"rebuild": dataset})
    hours = format_count(answer["hours"], "hour")
    command = f"hybrid-router tables status {dataset}{stack.options}"
    typer.echo(f"{dataset}: {hours} to be brought into the table; follow it with '{command}'")
    return ExitCode.OK
