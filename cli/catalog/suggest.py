"""``hybrid-router catalog suggest``: types for the columns of a dataset, from its data, and views that cast to them."""

from collections import Counter
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

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
from cli.catalog.sample import DatasetSample, read_folder_sample, read_sample
from cli.commands import Json, Local, Profile, Region, Stage, command
from cli.deployed_stack import DeployedStack, connect_to_stage, known_dataset
from cli.documents import SuggestedColumn, Suggestion
from cli.errors import NotFoundError
from cli.terminal import print_answer, print_table, working
from lake.errors import InvalidInputError
from lake.ledger.datasets import DatasetRow
from lake.texts import format_count, printable
from router.iceberg.metadata import shown_columns
from router.services import Services
from router.tables.batch import CatalogEntry, TableCatalog

SHOWN_CHARACTERS = 40
"""Maximum length of an example on the terminal; ``--json`` has all of it."""


@command("catalog suggest")
def suggest(
    dataset: Annotated[str, typer.Argument(help="Name of the dataset, or its folder in the output of convert.")],
    files: Annotated[int, typer.Option(min=1, max=1000, help="Maximum number of Parquet objects to read.")] = 5,
    dialect: Annotated[Dialect | None, typer.Option(help="Print only the SQL of this dialect.")] = None,
    *,
    as_json: Json = False,
    stage: Stage = "dev",
    local: Local = False,
    profile: Profile = None,
    region: Region = None,
) -> None:
    """Propose types for the columns of a dataset, count what they refuse, and print a view that casts to them.

    What contains a slash is a folder, such as converted/lake/orders: it needs no stack.
    """
    if "/" in dataset:
        print_folder_suggestion(Path(dataset), files, dialect, as_json=as_json)
    else:
        stack = connect_to_stage(stage, local=local, profile=profile, region=region)
        print_suggestion(stack, dataset, files, dialect, as_json=as_json)


def print_suggestion(
    stack: DeployedStack, dataset: str, max_objects: int, dialect: Dialect | None, *, as_json: bool
) -> None:
    """Print the types and the SQL of views; ``max_objects``: maximum number of Parquet objects that are read."""
    row = known_dataset(stack, dataset)
    with working("reading a sample of the lake ..."):
        sample = read_sample(stack, dataset, max_objects)
    if not sample.objects:
        folder = f"s3://{stack.resources.lake_bucket}/{dataset}/"
        raise NotFoundError(f"{folder} has no Parquet object yet: run 'hybrid-router status' to see what waits")
    proposals = _proposals([*row.columns, *(name for name in sample.values if name not in row.columns)], sample)
    _print_all(dataset, sample, proposals, _views(stack, row, proposals), dialect, as_json=as_json)


def print_folder_suggestion(folder: Path, max_files: int, dialect: Dialect | None, *, as_json: bool) -> None:
    """Print types for a dataset's folder in the output of ``convert``; a folder has no table of Athena."""
    if dialect is Dialect.ATHENA:
        raise InvalidInputError("a folder is not a table of Athena: pass --dialect duckdb or spark")
    sample = read_folder_sample(folder, max_files)
    if not sample.objects:
        raise InvalidInputError(
            f"{folder} has no file date=*/hour=*/*.parquet: pass a dataset's folder of the output of convert, such as "
            "converted/lake/orders"
        )
    dataset, proposals = folder.resolve().name, _proposals(sample.values, sample)
    typed = _typed(proposals)
    views = {
        Dialect.DUCKDB: duckdb_view(duckdb_folder(str(folder.resolve())), dataset, [*proposals], typed),
        Dialect.SPARK: spark_view("", dataset, [*proposals], typed),
    }
    _print_all(dataset, sample, proposals, views, dialect, as_json=as_json)


def _proposals(columns: Iterable[str], sample: DatasetSample) -> dict[str, Proposal]:
    return {name: propose(sample.values.get(name, Counter())) for name in columns}


def _typed(proposals: dict[str, Proposal]) -> dict[str, ColumnType]:
    return {name: proposal.type for name, proposal in proposals.items() if proposal.type is not None}


def _print_all(
    dataset: str,
    sample: DatasetSample,
    proposals: dict[str, Proposal],
    views: dict[Dialect, str],
    dialect: Dialect | None,
    *,
    as_json: bool,
) -> None:
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
    print_answer(document, lambda: text(document), as_json=as_json)


def _views(stack: DeployedStack, row: DatasetRow, proposals: dict[str, Proposal]) -> dict[Dialect, str]:
    dataset, resources, typed, attach = row.name, stack.resources, _typed(proposals), ""
    database, source = resources.catalog_database, duckdb_folder(f"s3://{resources.lake_bucket}/{dataset}")
    columns = list(proposals)
    if (table := _iceberg_table(stack, dataset)) is not None:
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
        # Spark does not know the projection of partitions: a Hive table has no row for it.
        Dialect.SPARK: spark_view("" if table is None else database, dataset, columns, typed),
    }


def _iceberg_table(stack: DeployedStack, dataset: str) -> CatalogEntry | None:
    if not stack.outputs.tables or not (settings := stack.settings()).has_table(dataset):
        return None
    services = Services(settings, stack.resources, stack.ledger, stack.s3, stack.glue, lambda: datetime.now(UTC))
    return TableCatalog(services, dataset).load()


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
