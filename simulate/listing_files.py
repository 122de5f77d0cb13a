"""Listings on this machine: a CSV file with a header, or an S3 Inventory report."""

from __future__ import annotations

import csv
import gzip
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote_plus

from pyarrow import ArrowInvalid
from pyarrow.parquet import ParquetFile

from lake.errors import InvalidInputError
from lake.printable import printable
from simulate.listing import ListedFile
from simulate.profile import MAX_BYTES

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

COLUMNS = ("key", "size", "time")
INVENTORY_COLUMNS = ("Key", "Size", "LastModifiedDate")
"""What a CSV report must have (Amazon S3 User Guide, "Amazon S3 Inventory list"); a report has no header: the schema is
in its manifest.json, and keys are URL-encoded."""
PARQUET_COLUMNS = ("key", "size", "last_modified_date")
"""The same of a Parquet report, where keys are as they are."""
DELETE_MARKER, PARQUET_DELETE_MARKER = "IsDeleteMarker", "is_delete_marker"


def read_csv(path: Path) -> Iterator[ListedFile]:
    """The files of a CSV file whose first line names ``COLUMNS``.

    Raises
    ------
    InvalidInputError
        The file cannot be read, lacks a column, or has a line that is not valid.
    """
    try:
        with path.open(encoding="utf-8", newline="") as file:
            lines = csv.DictReader(file)
            if missing := [name for name in COLUMNS if name not in (lines.fieldnames or ())]:
                raise InvalidInputError(
                    f"{path} has no column {missing[0]}: its first line must name {', '.join(COLUMNS)}"
                )
            for line in lines:
                key, size, time = (line[name] or "" for name in COLUMNS)
                yield _listed(key, size, time, f"{path}, line {lines.line_num}")
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise InvalidInputError(f"{path} cannot be read: {error}") from error


def read_inventory(manifest: Path) -> Iterator[ListedFile]:
    """The objects of an S3 Inventory report in CSV or Parquet; its files lie as in its bucket, or beside the manifest.

    Delete markers are left out. Of an object with versions each one is a file.

    Raises
    ------
    InvalidInputError
        The manifest or a file of it cannot be read, is of another format, or lacks a column.
    """
    try:
        body = json.loads(manifest.read_text(encoding="utf-8"))
        kind, schema = str(body["fileFormat"]), str(body["fileSchema"])
        keys = [str(item["key"]) for item in body["files"]]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InvalidInputError(
            f"{manifest} is not a manifest.json of S3 Inventory ({error}): copy the report's folders from its bucket, "
            "and pass the manifest.json of one report"
        ) from error
    if kind not in ("CSV", "Parquet"):
        raise InvalidInputError(
            f"{manifest} is of the format {printable(kind)}: configure the inventory as CSV or Parquet"
        )
    for key in keys:
        path = _data_file(manifest, key)
        try:
            yield from _read_report_csv(path, schema) if kind == "CSV" else _read_report_parquet(path)
        except (OSError, EOFError, UnicodeDecodeError, csv.Error) as error:
            raise InvalidInputError(f"{path} cannot be read: {error}") from error


def _data_file(manifest: Path, key: str) -> Path:
    """``key`` is that of the destination bucket, of which the folders around the manifest are a copy."""
    name = Path(key).name
    places = [*(parent / key for parent in manifest.absolute().parents), manifest.parent / name]
    places.append(manifest.absolute().parents[1] / "data" / name)
    for place in places:
        if place.is_file():
            return place
    raise InvalidInputError(
        f"{manifest} names {printable(key)}, which is not there: copy the folder data of the report as well, beside "
        "the folder of the manifest"
    )


def _read_report_csv(path: Path, schema: str) -> Iterator[ListedFile]:
    columns = [name.strip() for name in schema.split(",")]
    places = [_place(columns, name, path) for name in INVENTORY_COLUMNS]
    marker = columns.index(DELETE_MARKER) if DELETE_MARKER in columns else None
    with gzip.open(path, "rt", encoding="utf-8", newline="") as file:
        lines = csv.reader(file)
        for line in lines:
            where = f"{path}, line {lines.line_num}"
            if len(line) < len(columns):
                raise InvalidInputError(f"{where}: it has {len(line)} values, and the schema {len(columns)}")
            if marker is not None and line[marker] == "true":
                continue
            key, size, time = (line[place] for place in places)
            yield _listed(unquote_plus(key), size, time, where)


def _read_report_parquet(path: Path) -> Iterator[ListedFile]:
    try:
        file = ParquetFile(path)
        columns = file.schema_arrow.names
        for name in PARQUET_COLUMNS:
            _place(columns, name, path)
        marker = [PARQUET_DELETE_MARKER] if PARQUET_DELETE_MARKER in columns else []
        for batch in file.iter_batches(columns=[*PARQUET_COLUMNS, *marker]):
            yield from _batch_files(batch.to_pylist())
    except ArrowInvalid as error:
        raise InvalidInputError(f"{path} cannot be read: {error}") from error


def _batch_files(rows: Iterable[dict[str, Any]]) -> Iterator[ListedFile]:
    for row in rows:
        if not row.get(PARQUET_DELETE_MARKER):
            time: datetime = row["last_modified_date"]
            instant = time if time.tzinfo else time.replace(tzinfo=UTC)
            yield ListedFile(row["key"], row["size"], instant.timestamp())


def _place(columns: list[str], name: str, path: Path) -> int:
    if name not in columns:
        raise InvalidInputError(f"{path} has no column {name}: add it to the configuration of the inventory")
    return columns.index(name)


def _listed(key: str, size: str, time: str, where: str) -> ListedFile:
    """A time without a zone is in UTC."""
    if not size.isascii() or not size.isdigit() or int(size) > MAX_BYTES:
        raise InvalidInputError(f"{where}: size = {printable(size)!r} is wrong: expected a number of bytes")
    try:
        instant = datetime.fromisoformat(time)
    except ValueError:
        raise InvalidInputError(
            f"{where}: time = {printable(time)!r} is wrong: expected a time such as 2026-11-18T09:30:00Z"
        ) from None
    if instant.tzinfo is None:
        instant = instant.replace(tzinfo=UTC)
    return ListedFile(key, int(size), instant.timestamp())
