"""Iceberg tables over the Parquet files of an output folder, one for each dataset, in a catalog that is a file.

A table is a projection of the folder: one snapshot adds published files and removes withdrawn ones. The next call
completes a call that was killed, and undoes other programs' changes of a table.
"""

import errno
import json
import shutil
import zlib
from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pyarrow.parquet as pq
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.exceptions import CommitFailedException, NoSuchTableError, ValidationError
from pyiceberg.manifest import DataFile, DataFileContent, FileFormat
from pyiceberg.partitioning import PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table import Table, Transaction
from pyiceberg.typedef import Record
from pyiceberg.types import StringType
from sqlalchemy.exc import DBAPIError

from offline.output_folder import LAKE, TABLES, OutputFolder, PublishedFile
from router.iceberg.metadata import NAME_MAPPING, PROPERTIES, SPEC, current_schema, hour_of, new_metadata, with_columns

CATALOG = "hybrid_router"
CATALOG_FILE = "catalog.db"
KEEPS_FEW_DOCUMENTS = {"write.metadata.delete-after-commit.enabled": "true"}


DAMAGED = (
    FileNotFoundError,
    EOFError,
    MemoryError,
    OverflowError,
    SystemError,
    ValidationError,
    ValueError,
    zlib.error,
)
"""Errors of pyiceberg for a missing, empty or truncated document; its C decoder reads any bytes as sizes."""


def update_tables(output: OutputFolder) -> dict[str, str | None]:
    """Update each table to the folder's content, by at most one snapshot, and return each dataset's current snapshot.

    Raises ``OSError`` if the catalog is locked or damaged, another program commits meanwhile, the folder's path is not
    UTF-8, or the disk is full.
    """
    wanted: defaultdict[str, dict[str, PublishedFile]] = defaultdict(dict)
    for file in output.published_files():
        wanted[file.partition.dataset][str(file.path)] = file
    try:
        catalog = open_catalog(output.root)
        catalog.create_namespace_if_not_exists(LAKE)
        datasets = wanted.keys() | {name for _, name in catalog.list_tables(LAKE)}
        return {name: _project(catalog, output.root, name, wanted[name]) for name in sorted(datasets)}
    except (DBAPIError, CommitFailedException, UnicodeEncodeError) as error:
        reason = f"{getattr(error, 'orig', error)}; without this file the next call recreates the tables"
        raise OSError(errno.EIO, reason, str(output.root / TABLES / CATALOG_FILE)) from error


def open_catalog(root: Path) -> SqlCatalog:
    folder = root.resolve() / TABLES
    folder.mkdir(exist_ok=True)
    return SqlCatalog(CATALOG, uri=f"sqlite:///{quote(str(folder / CATALOG_FILE))}")


def _current(catalog: SqlCatalog, location: Path, dataset: str) -> tuple[Table, list[DataFile]] | None:
    """Return the table of the catalog with its files; None if there is no usable table.

    The folder was moved or copied, and the table's documents name its former place; or a document was lost; or another
    program has changed partitions or the mapping of names to columns.
    """
    try:
        table = catalog.load_table((LAKE, dataset))
        is_own = table.spec().spec_id == SPEC and NAME_MAPPING in table.properties
        is_here = table.location() == str(location)
        return (table, [task.file for task in table.scan().plan_files()]) if is_own and is_here else None
    except (NoSuchTableError, *DAMAGED):
        return None


def _new_table(catalog: SqlCatalog, location: Path, dataset: str) -> Table:
    if (LAKE, dataset) in catalog.list_tables(LAKE):
        catalog.drop_table((LAKE, dataset))
    if location.exists():
        shutil.rmtree(location)
    empty = new_metadata(str(location), "", 0, 0)
    (schema,), (partitions,), properties = empty["schemas"], empty["partition-specs"], empty["properties"]
    return catalog.create_table(
        (LAKE, dataset),
        Schema.model_validate(schema),
        location=empty["location"],
        partition_spec=PartitionSpec.model_validate(partitions),
        properties={**PROPERTIES, **KEEPS_FEW_DOCUMENTS, NAME_MAPPING: properties[NAME_MAPPING]},
    )


def _project(catalog: SqlCatalog, root: Path, dataset: str, wanted: Mapping[str, PublishedFile]) -> str | None:
    """Return the current snapshot afterwards; None if the table has never had a row."""
    location = root.resolve() / TABLES / dataset
    table, files = _current(catalog, location, dataset) or (_new_table(catalog, location, dataset), [])
    shown = {file.file_path: file for file in files}
    added = [file for path, file in wanted.items() if path not in shown]
    removed = [file for path, file in shown.items() if path not in wanted]
    if added or removed:
        with table.transaction() as transaction:
            _add_columns(transaction, added)
            with transaction.update_snapshot().overwrite() as snapshot:
                for file in added:
                    snapshot.append_data_file(_data_file(file))
                for gone in removed:
                    snapshot.delete_data_file(gone)
        if removed:
            # The files of these rows are about to be deleted.
            named = {reference.snapshot_id for reference in table.refs().values()}
            earlier = [item.snapshot_id for item in table.snapshots() if item.snapshot_id not in named]
            table.maintenance.expire_snapshots().by_ids(earlier).commit()
    current = table.current_snapshot()
    return None if current is None else str(current.snapshot_id)


def _add_columns(transaction: Transaction, files: Iterable[PublishedFile]) -> None:
    """Add the files' columns that the table lacks."""
    document: dict[str, Any] = json.loads(transaction.table_metadata.model_dump_json())
    names = dict.fromkeys(name for file in files for name in pq.read_schema(file.path).names)
    # pyiceberg gives them the next ids; the files have no ids.
    extended = with_columns(document, names, unnumbered=names)
    known = len(current_schema(document)["fields"])
    new = current_schema(extended)["fields"][known:]
    if new:
        with transaction.update_schema() as schema:
            for field in new:
                schema.add_column((field["name"],), StringType())
        transaction.set_properties({NAME_MAPPING: extended["properties"][NAME_MAPPING]})


def _data_file(file: PublishedFile) -> DataFile:
    days, hour = hour_of(file.partition)
    return DataFile.from_args(
        content=DataFileContent.DATA,
        file_path=str(file.path),
        file_format=FileFormat.PARQUET,
        partition=Record(days, hour),
        record_count=file.rows,
        file_size_in_bytes=file.path.stat().st_size,
        spec_id=SPEC,
    )
