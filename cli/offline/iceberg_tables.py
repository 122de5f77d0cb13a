"""Iceberg tables over the Parquet files of an output folder, one for each dataset, in a catalog that is a file.

A table is a projection of the folder: one snapshot adds published files and removes withdrawn ones. The next call
completes a call that was killed, and undoes other programs' changes of a table.
"""

import errno
import json
import shutil
import sys
from collections import defaultdict
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.parse import quote
from uuid import uuid4

import pyarrow.parquet as pq
from pyiceberg.catalog.sql import IcebergTables, SqlCatalog
from pyiceberg.exceptions import CommitFailedException, NoSuchTableError, ValidationError
from sqlalchemy import update
from sqlalchemy.exc import DBAPIError

from lake.errors import InvalidDocumentError
from lake.time import epoch_milliseconds
from offline.output_folder import LAKE, TABLES, OutputFolder
from router.iceberg.commit import DATA, Batch, commit_batch, live_entries, manifests_of, write_document
from router.iceberg.metadata import (
    MAX_PREVIOUS_VERSIONS,
    NAME_MAPPING,
    DataFile,
    Metadata,
    batch_of,
    following,
    head_of,
    hour_of,
    new_metadata,
    takes_files,
)

CATALOG = "hybrid_router"
CATALOG_FILE = "catalog.db"
KEEP_SNAPSHOTS = timedelta(days=1)
"""Time for which a snapshot can be read after a later call has added files."""


class _Disk:
    """The files of tables; a URI is a path."""

    def read(self, path: str) -> bytes:
        return Path(path).read_bytes()

    def write(self, path: str, body: bytes) -> None:
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        Path(path).write_bytes(body)


DISK = _Disk()


def update_tables(output: OutputFolder) -> dict[str, str | None]:
    """Update each table to the folder's content, by at most one snapshot, and return each dataset's current snapshot.

    Raises ``OSError`` if the catalog is locked or damaged, another program commits meanwhile, the folder's path is not
    UTF-8, or the disk is full.
    """
    wanted: defaultdict[str, dict[str, DataFile]] = defaultdict(dict)
    for partition, path, item in output.published_files():
        wanted[partition.dataset][str(path)] = DataFile(str(path), item.size, item.rows, hour_of(partition))
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


def _current(catalog: SqlCatalog, location: Path, dataset: str) -> tuple[str, Metadata, dict[str, DataFile]] | None:
    """Return the path of the table's document, the document, and the table's files; None if no table is usable.

    A table is not usable if the folder was moved or copied, because its documents name the former place; if a document
    was lost; or if another program has changed partitions or the mapping of names to columns, or deleted single rows.
    """
    try:
        table = catalog.load_table((LAKE, dataset))
        # pyiceberg validates the document, decompresses it, and adds what other programs may omit.
        metadata = json.loads(table.metadata.model_dump_json())
        is_own = takes_files(metadata) and NAME_MAPPING in metadata["properties"]
        if not is_own or metadata["location"] != str(location):
            return None
        manifests = manifests_of(metadata, DISK)
        entries = [entry["data_file"] for manifest in manifests for entry in live_entries(manifest, DISK)]
    except (NoSuchTableError, FileNotFoundError, EOFError, InvalidDocumentError, ValidationError, ValueError):
        return None
    shown = {}
    for file in entries:
        hour = file["partition"]["date"], file["partition"]["hour"]
        if file["content"] != DATA or None in hour:
            return None
        shown[file["file_path"]] = DataFile(file["file_path"], file["file_size_in_bytes"], file["record_count"], hour)
    return table.metadata_location, metadata, shown


def _new_table(catalog: SqlCatalog, location: Path, dataset: str) -> tuple[str, Metadata, dict[str, DataFile]]:
    with suppress(NoSuchTableError):
        catalog.drop_table((LAKE, dataset))
    if location.exists():
        shutil.rmtree(location)
    metadata = new_metadata(str(location), str(uuid4()), 0, epoch_milliseconds(datetime.now(UTC)))
    document = write_document(metadata, DISK)
    catalog.register_table((LAKE, dataset), document)
    return document, metadata, {}


def _project(catalog: SqlCatalog, root: Path, dataset: str, wanted: Mapping[str, DataFile]) -> str | None:
    """Return the current snapshot afterwards; None if the table has never had a row."""
    location = root.resolve() / TABLES / dataset
    document, metadata, shown = _current(catalog, location, dataset) or _new_table(catalog, location, dataset)
    added = [file for path, file in wanted.items() if path not in shown]
    removed = [file for path, file in shown.items() if path not in wanted]
    if added or removed:
        now = datetime.now(UTC)
        # The files of removed rows are about to be deleted.
        keep_from = sys.maxsize if removed else epoch_milliseconds(now - KEEP_SNAPSHOTS)
        names = dict.fromkeys(name for file in added for name in pq.read_schema(file.path).names)
        # The files have no field ids.
        batch = Batch(batch_of(metadata) + 1, added, removed, columns=[*names], unnumbered=names)
        next_one = commit_batch(metadata, DISK, batch, epoch_milliseconds(now), keep_from)
        _swap(catalog, document, following(next_one, document))
        for item in metadata["metadata-log"][: 1 - MAX_PREVIOUS_VERSIONS]:
            Path(item["metadata-file"]).unlink(missing_ok=True)
        metadata = next_one
    head = head_of(metadata)
    return None if head is None else str(head["snapshot-id"])


def _swap(catalog: SqlCatalog, document: str, metadata: Metadata) -> None:
    """Replace the table's document. Raises ``CommitFailedException`` if another program has replaced it meanwhile."""
    current = update(IcebergTables).where(IcebergTables.metadata_location == document)
    values = {"metadata_location": write_document(metadata, DISK), "previous_metadata_location": document}
    with catalog.engine.begin() as connection:
        if connection.execute(current.values(**values)).rowcount < 1:
            raise CommitFailedException("another program has changed the table")
