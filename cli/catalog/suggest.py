"""``hybrid-router catalog suggest``: types for the columns of a dataset, from a bounded sample of its data, and views.

The newest hours are read first, of published objects or of a folder that ``convert`` has written.
"""

import io
from collections import Counter
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import chain, zip_longest
from pathlib import Path
from typing import IO, Annotated, Any, TypeVar

import pyarrow as pa
import pyarrow.parquet as pq
import typer

from cli.catalog.column_types import (
    FORMATS,
    ColumnType,
    Dialect,
    Proposal,
    athena_view,
    duckdb_folder,
    duckdb_view,
    propose,
    quoted,
    spark_view,
)
from cli.commands import DEFAULT_PLACE, Answer, Place
from cli.deployed_stack import DeployedStack, connect_to_stage, known_dataset
from cli.documents import SuggestedColumn, Suggestion
from cli.errors import NotFoundError
from cli.terminal import print_table, working
from lake.aws_types import Buffer, S3Client
from lake.errors import InvalidInputError, TerminalError
from lake.faults import Fault, judge
from lake.layout import parse_generation
from lake.ledger.datasets import DatasetRow
from lake.texts import format_count, printable
from router.iceberg.metadata import shown_columns
from router.services import Services
from router.tables.batch import TableCatalog

T = TypeVar("T")


@dataclass(slots=True)
class DatasetSample:
    objects: int = 0
    rows: int = 0
    values: dict[str, Counter[str]] = field(default_factory=dict)
    """Number of occurrences of each value of each column, without NULL."""


SHOWN_CHARACTERS = 40
"""Maximum length of an example on the terminal; ``--json`` has all of it."""


def catalog_suggest_command(
    dataset: Annotated[str, typer.Argument(help="Name of the dataset, or its folder in the output of convert.")],
    files: Annotated[int, typer.Option(min=1, max=1000, help="Maximum number of Parquet objects to read.")] = 5,
    dialect: Annotated[Dialect | None, typer.Option(help="Print only the SQL of this dialect.")] = None,
    place: Place = DEFAULT_PLACE,
) -> Answer:
    """Propose types for the columns of a dataset, count what they refuse, and print a view that casts to them.

    A name with a slash is a folder, such as converted/lake/orders: it needs no stack.
    """
    if "/" in dataset:
        return suggest_for_folder(Path(dataset), files, dialect)
    return suggest_for_dataset(connect_to_stage(place), dataset, files, dialect)


def suggest_for_dataset(stack: DeployedStack, dataset: str, max_objects: int, dialect: Dialect | None) -> Answer:
    """Return the types and the SQL of views; ``max_objects``: maximum number of Parquet objects that are read."""
    row = known_dataset(stack, dataset)
    with working("reading a sample of the lake ..."):
        sample = read_sample(stack, dataset, max_objects)
    if not sample.objects:
        folder = f"s3://{stack.resources.lake_bucket}/{dataset}/"
        raise NotFoundError(f"{folder} has no Parquet object yet: run 'hybrid-router status' to see what waits")
    proposals = {name: propose(sample.values.get(name, {})) for name in dict.fromkeys((*row.columns, *sample.values))}
    return _answer(dataset, sample, proposals, _views(stack, row, proposals), dialect)


def suggest_for_folder(folder: Path, max_files: int, dialect: Dialect | None) -> Answer:
    """Return types for a dataset's folder in the output of ``convert``; a folder has no table in Athena."""
    if dialect is Dialect.ATHENA:
        raise InvalidInputError("a folder is not a table of Athena: pass --dialect duckdb or spark")
    sample = DatasetSample()
    hours = [sorted(hour.glob("*.parquet")) for hour in sorted(folder.glob("date=*/hour=*"), reverse=True)]
    for number, path in enumerate(_one_of_each(hours, sum(map(len, hours)))):
        with path.open("rb") as file, reading_parquet(str(path), "delete it, and convert its files again"):
            if number < max_files:
                _add_object(sample, file)
                continue
            # The views need the columns of all files.
            sample.values.update((name, Counter()) for name in pq.read_schema(file).names if name not in sample.values)
    if not sample.objects:
        raise InvalidInputError(
            f"{folder} has no file date=*/hour=*/*.parquet: pass a dataset's folder of the output of convert, such as "
            "converted/lake/orders"
        )
    dataset, proposals = folder.resolve().name, {name: propose(counts) for name, counts in sample.values.items()}
    typed = _typed(proposals)
    views = {
        Dialect.DUCKDB: duckdb_view(duckdb_folder(str(folder.resolve())), dataset, [*proposals], typed),
        Dialect.SPARK: spark_view("", dataset, [*proposals], typed),
    }
    return _answer(dataset, sample, proposals, views, dialect)


def _typed(proposals: dict[str, Proposal]) -> dict[str, ColumnType]:
    return {name: proposal.type for name, proposal in proposals.items() if proposal.type is not None}


def _answer(
    dataset: str,
    sample: DatasetSample,
    proposals: dict[str, Proposal],
    views: dict[Dialect, str],
    dialect: Dialect | None,
) -> Answer:
    columns = (
        SuggestedColumn(
            name=name,
            type="VARCHAR" if proposal.type is None else proposal.type.name,
            format=None if proposal.type is None else FORMATS.get(proposal.type.kind),
            values=proposal.values,
            nulls=sample.rows - proposal.values,
            refused=proposal.refused,
            examples=proposal.examples,
        )
        for name, proposal in proposals.items()
    )
    sql = {dialect.value: view for dialect, view in views.items()}
    document = Suggestion(dataset, sample.objects, sample.rows, tuple(columns), sql)
    text = _print if dialect is None else lambda _: typer.echo(f"{views[dialect]};")
    return Answer(document, lambda: text(document))


def _views(stack: DeployedStack, row: DatasetRow, proposals: dict[str, Proposal]) -> dict[Dialect, str]:
    dataset, resources, typed, attach = row.name, stack.resources, _typed(proposals), ""
    database, source = resources.catalog_database, duckdb_folder(f"s3://{resources.lake_bucket}/{dataset}")
    columns = list(proposals)
    table = None
    if stack.outputs.tables and (settings := stack.settings()).has_table(dataset):
        services = Services(settings, stack.resources, stack.ledger, stack.s3, stack.glue, lambda: datetime.now(UTC))
        table = TableCatalog(services, dataset).load()
    if table is not None:
        shown = shown_columns(table.metadata, columns, row.unnumbered)
        database, columns = resources.tables_database, [*shown.values()]
        typed = {shown[name]: kind for name, kind in typed.items() if name in shown}
        if stack.local:
            # The local cloud has no Iceberg endpoint: the view shows the current snapshot.
            source = f"iceberg_scan('{table.location}')"
        else:
            account = stack.outputs.overnight.split(":")[4]
            attach = f"ATTACH IF NOT EXISTS '{account}' AS glue (TYPE iceberg, ENDPOINT_TYPE 'glue');\n"
            # Each query reads the last snapshot of a catalog that is attached as glue.
            source = ".".join(quoted(name, Dialect.DUCKDB) for name in ("glue", database, dataset))
    return {
        Dialect.ATHENA: athena_view(database, dataset, columns, typed),
        Dialect.DUCKDB: attach + duckdb_view(source, dataset, columns, typed),
        # Spark does not know partition projection: it sees no row of a Hive table.
        Dialect.SPARK: spark_view("" if table is None else database, dataset, columns, typed),
    }


def _print(found: Suggestion) -> None:
    title = f"{found.dataset}: {format_count(found.rows, 'row')} of {format_count(found.files, 'Parquet object')}"
    rows = [
        (
            column.name,
            column.type,
            column.format or "",
            ", ".join(_shown(text) for text in column.examples),
            f"{column.values:,}",
            f"{column.refused:,}",
        )
        for column in found.columns
    ]
    print_table(title, ("column", "type", "format", "refused values"), ("values", "refused"), rows)
    typer.echo("A refused value is NULL in the column of the type; the column <name>_text keeps every value.")
    for dialect, view in found.sql.items():
        typer.echo(f"\n-- {dialect}\n{view};")


def _shown(text: str) -> str:
    cut = text if len(text) <= SHOWN_CHARACTERS else f"{text[:SHOWN_CHARACTERS]}..."
    return f'"{printable(cut)}"'


ROWS_PER_OBJECT = 2_000
"""Rows read from the beginning of each object; each value is compared with the patterns of the types."""
ROWS_PER_BATCH = 100
"""Number of rows decoded at once: values can be large."""
MAX_DECODED_BYTES = 64 << 20
"""Bytes of values after which no further rows of an object are read."""
BUFFER_BYTES = 1 << 20
"""Minimum number of bytes of a column that are requested at once."""


def read_sample(stack: DeployedStack, dataset: str, max_objects: int) -> DatasetSample:
    """Read the newest objects of a dataset: one object of each hour, then the next of each hour."""
    sample, lake = DatasetSample(), stack.resources.lake_bucket
    for key, size in _newest_objects(stack.s3, lake, dataset, max_objects):
        # The sweep may have deleted this generation since it was listed.
        with suppress(stack.s3.exceptions.NoSuchKey), reading_object(lake, key):
            _add_object(sample, io.BufferedReader(RangeReader(stack.s3, lake, key, size), BUFFER_BYTES))
    return sample


@contextmanager
def reading_parquet(place: str, advice: str) -> Iterator[None]:
    """Raise pyarrow's error for a damaged file as a ``TerminalError`` with its place and ``advice``.

    An error of the disk or the network is raised unchanged.
    """
    try:
        yield
    except (pa.ArrowException, OSError, ValueError) as error:
        # An error of the operating system is not about the content. botocore's time-outs are OSErrors without a number.
        if judge(error) == Fault.ENVIRONMENT or (isinstance(error, OSError) and error.errno is not None):
            raise
        raise TerminalError(f"{place} is not a Parquet file that can be read ({error}): {advice}") from error


def reading_object(bucket: str, key: str) -> AbstractContextManager[None]:
    manifest, _ = parse_generation(key) or ("", 0)
    return reading_parquet(
        f"s3://{bucket}/{key}", f"restore it, or run 'hybrid-router reprocess --manifest {manifest}'"
    )


def _one_of_each(hours: list[list[T]], number: int) -> list[T]:
    """Return at most ``number`` objects: the first of each hour, then the next of each hour."""
    return [item for items in zip_longest(*hours) for item in items if item is not None][:number]


def _add_object(sample: DatasetSample, file: IO[bytes]) -> None:
    parquet = pq.ParquetFile(file, buffer_size=BUFFER_BYTES, pre_buffer=False)
    sample.objects += 1
    for name in parquet.schema_arrow.names:
        sample.values.setdefault(name, Counter())
    first_row_group = [0] if parquet.num_row_groups else []
    rows = size = 0
    for batch in parquet.iter_batches(ROWS_PER_BATCH, first_row_group):
        rows, size = rows + batch.num_rows, size + batch.nbytes
        sample.rows += batch.num_rows
        for name, column in zip(batch.schema.names, batch.columns, strict=True):
            sample.values[name].update(text for text in column.to_pylist() if text is not None)
        if rows >= ROWS_PER_OBJECT or size >= MAX_DECODED_BYTES:
            break


def _newest_objects(s3: S3Client, bucket: str, dataset: str, number: int) -> list[tuple[str, int]]:
    """Return key and size of at most ``number`` objects in at most ``number`` hours."""
    hours: list[list[tuple[str, int]]] = []
    days = sorted(_folders(s3, bucket, f"{dataset}/"), reverse=True)
    for hour in chain.from_iterable(sorted(_folders(s3, bucket, day), reverse=True) for day in days):
        page = s3.list_objects_v2(Bucket=bucket, Prefix=hour)
        found = [(item["Key"], item["Size"]) for item in page.get("Contents", []) if parse_generation(item["Key"])]
        hours += [found] if found else []
        if len(hours) == number:
            break
    return _one_of_each(hours, number)


def _folders(s3: S3Client, bucket: str, prefix: str) -> Iterator[str]:
    pages = s3.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=prefix, Delimiter="/")
    return (item["Prefix"] for page in pages for item in page.get("CommonPrefixes", []))


class RangeReader(io.RawIOBase):
    """An object of which only the requested ranges are read."""

    def __init__(self, s3: S3Client, bucket: str, key: str, size: int) -> None:
        super().__init__()
        self._s3, self._size, self._position = s3, size, 0
        self._object: dict[str, Any] = {"Bucket": bucket, "Key": key}

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        self._position = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self._size}[whence] + offset
        return self._position

    def readinto(self, target: Buffer) -> int:
        with memoryview(target).cast("B") as view:
            count = max(0, min(len(view), self._size - self._position))
            if count:
                last = self._position + count - 1
                body = self._s3.get_object(**self._object, Range=f"bytes={self._position}-{last}")["Body"].read()
                count = len(body)
                view[:count] = body
        self._position += count
        return count
