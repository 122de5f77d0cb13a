"""Finds the files of some hours: lists the input bucket, page by page, and reads the ledger's arrival rows.

A database on disk keeps which manifest has which file, so memory does not grow with the number of files.
"""

import errno
import hashlib
import sqlite3
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from datetime import UTC, datetime, timedelta
from itertools import chain
from pathlib import Path
from typing import Any

from lake.dataset_rules import skip_old_days
from lake.errors import InvalidDocumentError
from lake.ledger import ManifestRow, State
from lake.ledger.table import batches_of
from lake.manifest import Identity, ObjectVersion, Partition
from lake.successors import files_by_successor
from verify.report import MAX_DIFFERENCES, Difference, HourReport
from verify.stack import HOUR_FORMAT, Hours, Stack

PARALLEL_READS = 8
"""Number of threads; boto3 keeps 10 connections."""
ROUTING_TIME = timedelta(minutes=30)
"""A younger file may still be in the arrivals queue."""
WINDOW = timedelta(days=1)
"""Range of modification times around the hours. A multipart upload is modified at its start and arrives at its end."""


class TimeOverError(Exception):
    """The time of a verification was over before the listing ended."""


def find_files(
    stack: Stack,
    hours: Hours,
    index: "FileIndex",
    reports: Mapping[str, HourReport],
    stop_at: datetime | None = None,
    *,
    old_days: bool = True,
) -> dict[str, list[ObjectVersion]]:
    """List all versions under the dataset's prefixes, and add the files that have a manifest to ``index``.

    Memory holds one page of the listing. ``old_days``: also read folders of days that ended ``LISTING_DAYS`` before the
    hours. Files that were IGNORED, but that today's rules give to the dataset, are reported. Returns the files without
    a row in the ledger, by hour, the first ``MAX_DIFFERENCES`` of each. Raises ``TimeOverError`` if a page is left at
    ``stop_at`` (aware).
    """
    unknown = defaultdict[str, list[ObjectVersion]](list)
    with ThreadPoolExecutor(PARALLEL_READS) as pool:
        for page in _pages(stack, hours, stop_at, old_days=old_days):
            known: dict[tuple[str, str], list[ObjectVersion]] = {}
            rows = chain.from_iterable(pool.map(stack.ledger.arrivals.get_many, batches_of(page)))
            for file, row in zip(page, rows, strict=True):
                if row is not None and row.manifest is not None:
                    if row.partition is not None and hours.contain(row.partition):
                        known.setdefault((row.partition.stamp, row.manifest), []).append(row.file)
                    continue
                stamp = Partition.of(hours.dataset, datetime.fromisoformat(file.arrived_at)).stamp
                if row is not None and stamp in reports:
                    command = f"hybrid-router backfill --dataset {hours.dataset} --from {stamp} --to {stamp}"
                    reports[stamp].cannot_be_proven(
                        f"{file.uri} (version {file.version}) was ignored when it arrived, because {row.reason}; "
                        f"the rules select it today: run '{command}'"
                    )
                elif stamp in reports and len(unknown[stamp]) < MAX_DIFFERENCES:
                    unknown[stamp].append(file)
            for (stamp, manifest), files in known.items():
                index.add(stamp, manifest, files)
    return unknown


def current_rows(stack: Stack, index: "FileIndex", report: HourReport) -> dict[str, ManifestRow | None]:
    """The rows of the manifests that now have the files of the report's hour. It updates ``index`` accordingly.

    Files of a superseded manifest or a part go to the manifests that have them now; a file that none has is reported.
    Files of an undivided collection are left out, and the hour cannot be proven.
    """
    rows: dict[str, ManifestRow | None] = {}
    remaining = index.manifests(report.hour)
    while remaining:
        manifest = remaining.pop()
        row = stack.ledger.manifests.get(manifest)
        if row is None or (row.state != State.SUPERSEDED and row.collection is None):
            rows[manifest] = row
            continue
        try:
            successors = files_by_successor(stack.s3, stack.ledger, stack.resources, row, index.files_of(manifest))
        except InvalidDocumentError as error:
            report.differs(Difference(f"manifest {manifest}", f"is {row.state}, and {error}"))
            continue
        if row.collection is not None and not successors:
            report.cannot_be_proven(f"files wait in the collection {row.collection}: it is not divided yet")
        for successor, files in successors.items():
            index.add(report.hour, successor, files)
            remaining.append(successor)
        index.remove(manifest)
    return rows


def _pages(stack: Stack, hours: Hours, stop_at: datetime | None, *, old_days: bool) -> Iterator[list[ObjectVersion]]:
    bucket = stack.resources.input_bucket
    first, last = (datetime.strptime(text, HOUR_FORMAT).replace(tzinfo=UTC) for text in (hours.first, hours.last))
    for prefix in stack.prefixes:
        delimiter: dict[str, Any] = {"Delimiter": "/"} if prefix in stack.flat_prefixes else {}
        markers: dict[str, Any] | None = {}
        while markers is not None:
            if stop_at is not None and stack.clock() >= stop_at:
                raise TimeOverError
            page = stack.s3.list_object_versions(Bucket=bucket, Prefix=prefix, **delimiter, **markers)
            yield [
                ObjectVersion.of(
                    bucket, item["Key"], item["ETag"], item["Size"], item["LastModified"], item.get("VersionId")
                )
                for item in page.get("Versions", [])
                if first - item["LastModified"] <= WINDOW
                and item["LastModified"] - last < WINDOW
                # Last, because there can be thousands of rules and years of files.
                and stack.belongs(item["Key"])
            ]
            markers = None
            if page["IsTruncated"]:
                key = page["NextKeyMarker"]
                after = key if old_days else skip_old_days(key, hours.first)
                version = page.get("NextVersionIdMarker") if after == key else None
                markers = {"KeyMarker": after} | ({"VersionIdMarker": version} if version else {})


SCHEMA = """
CREATE TABLE arrived (hour, manifest, bucket, key, etag, size, arrived_at, version_id);
CREATE INDEX by_manifest ON arrived (manifest);
CREATE TABLE published (identity PRIMARY KEY, manifest) WITHOUT ROWID;
"""

DISK_ERRORS = ("SQLITE_CANTOPEN", "SQLITE_FULL", "SQLITE_IOERR", "SQLITE_READONLY")
"""Errors of the disk; any other one, such as a wrong syntax, is a defect of this program."""


@contextmanager
def open_index(folder: Path) -> Iterator["FileIndex"]:
    """A new index, with a database in ``folder``, which the caller removes.

    Raises ``OSError`` if the disk is full or broken, instead of sqlite3's own error.
    """
    try:
        with closing(FileIndex(folder)) as index:
            yield index
    except sqlite3.OperationalError as error:
        # An extended code has a longer name, and errors that Python raises itself have none.
        if not getattr(error, "sqlite_errorname", "").startswith(DISK_ERRORS):
            raise
        raise OSError(errno.EIO, str(error)) from error


class FileIndex:
    """Which manifest has which file. It must be used by only one thread."""

    def __init__(self, folder: Path) -> None:
        # The file lasts as long as the process that fills it: a crash leaves nothing that is read again.
        self._database = sqlite3.connect(folder / "files.sqlite", isolation_level=None)
        self._database.executescript(f"PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; {SCHEMA}")

    def close(self) -> None:
        self._database.close()

    def add(self, hour: str, manifest: str, files: Iterable[ObjectVersion]) -> None:
        """Add files that arrived in an hour (``YYYY-MM-DDTHH``) and belong to this manifest."""
        rows = (
            (hour, manifest, file.bucket, file.key, file.etag, file.size, file.arrived_at, file.version_id)
            for file in files
        )
        self._database.executemany("INSERT INTO arrived VALUES (?, ?, ?, ?, ?, ?, ?, ?)", rows)

    def manifests(self, hour: str) -> list[str]:
        rows = self._database.execute("SELECT DISTINCT manifest FROM arrived WHERE hour = ? ORDER BY 1", (hour,))
        return [manifest for (manifest,) in rows]

    def files_of(self, manifest: str) -> set[ObjectVersion]:
        query = "SELECT bucket, key, etag, size, arrived_at, version_id FROM arrived WHERE manifest = ?"
        return {ObjectVersion(*row) for row in self._database.execute(query, (manifest,))}

    def remove(self, manifest: str) -> None:
        self._database.execute("DELETE FROM arrived WHERE manifest = ?", (manifest,))

    def publisher(self, identity: Identity, manifest: str) -> str:
        """The first manifest for which this method was called with the file: the publisher of the file."""
        digest = hashlib.blake2b("\0".join(identity).encode(), digest_size=16).digest()
        self._database.execute("INSERT OR IGNORE INTO published VALUES (?, ?)", (digest, manifest))
        (first,) = self._database.execute("SELECT manifest FROM published WHERE identity = ?", (digest,)).fetchone()
        return str(first)
