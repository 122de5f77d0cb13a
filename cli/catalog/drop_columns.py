"""``hybrid-router catalog drop-columns``: drops the columns that no published file has, to make room for others."""

import time
from collections.abc import Iterator
from typing import IO, cast

import pyarrow.parquet as pq
import typer

from cli.catalog.suggest import RangeReader, reading_object
from cli.commands import Answer, Dataset, DryRun
from cli.deployed_stack import DeployedStack, known_dataset
from cli.terminal import ended_by_signal, working
from lake.errors import InvalidInputError
from lake.layout import list_objects, parse_generation
from lake.ledger import State
from lake.ledger.table import INDEX_WAIT_SECONDS
from lake.manifest import Lane
from lake.settings.lanes import MAX_COLUMN_LIMIT
from lake.texts import format_count


def catalog_drop_columns_command(stack: DeployedStack, dataset: Dataset, *, dry_run: DryRun = False) -> Answer:
    """Drop the columns of a dataset that have no value in any published file, to make room for others."""
    # A Parquet file of the lake has only the columns in which it has a value, so its footer decides.
    row = known_dataset(stack, dataset)
    _check_idle(stack, dataset)
    unused, read = set(row.columns), set[str]()
    with working("reading footers ..."):
        for names in _columns_of_files(stack, dataset, read):
            unused -= names
            if not unused:
                break
    dropped = sorted(unused)
    if dropped and not dry_run:
        # A closed terminal must not prevent the columns from being put back.
        with ended_by_signal():
            dropped = _drop(stack, dataset, row.columns, dropped, read)
    verb = "would be dropped" if dry_run else "dropped"
    total = f"{format_count(len(dropped), 'column')} {verb} of {len(row.columns)}, by {format_count(len(read), 'file')}"
    document = {"dataset": dataset, "dryRun": dry_run, "files": len(read), "dropped": dropped}
    return Answer(document, lambda: typer.echo("\n".join([*dropped, total])))


def _drop(
    stack: DeployedStack, dataset: str, columns: tuple[str, ...], dropped: list[str], read: set[str]
) -> list[str]:
    """Drop the columns, and return the columns that are in no file published after ``read`` was listed."""
    datasets, used = stack.ledger.datasets, set(dropped)
    try:
        if not datasets.drop_columns(dataset, columns, dropped):
            used = set()
            raise InvalidInputError(f"the columns of dataset {dataset} changed meanwhile: run the command again")
        # A conversion that has begun meanwhile knows the columns and may publish them; the index shows it late.
        time.sleep(INDEX_WAIT_SECONDS)
        _check_idle(stack, dataset)
        # A conversion that has also ended has published them; a conversion that begins later does not know them.
        used = set[str]().union(*_columns_of_files(stack, dataset, read)).intersection(dropped)
    finally:
        datasets.reserve_columns(dataset, sorted(used), MAX_COLUMN_LIMIT)
    return [name for name in dropped if name not in used]


def _check_idle(stack: DeployedStack, dataset: str) -> None:
    for lane in Lane:
        for state in (State.RUNNING, State.PUBLISHING):
            for row in stack.ledger.manifests.open(lane, state):
                if row.partition.dataset == dataset:
                    raise InvalidInputError(
                        f"manifest {row.id} of dataset {dataset} is {state}, and its files may have any column: run "
                        "the command again when nothing of the dataset is being converted"
                    )


def _columns_of_files(stack: DeployedStack, dataset: str, read: set[str]) -> Iterator[set[str]]:
    """Yield the columns of each file whose key is not in ``read``, and add the key to ``read``."""
    bucket = stack.resources.lake_bucket
    for item in list_objects(stack.s3, bucket, f"{dataset}/"):
        if parse_generation(item["Key"]) is None or item["Key"] in read:
            continue
        try:
            file = RangeReader(stack.s3, bucket, item["Key"], item["Size"])
            with reading_object(bucket, item["Key"]):
                names = set(pq.read_schema(cast("IO[bytes]", file)).names)
        except stack.s3.exceptions.NoSuchKey:
            # The sweep has deleted this generation since it was listed.
            continue
        read.add(item["Key"])
        yield names
