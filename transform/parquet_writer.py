"""Batches of a reader to Parquet files on the local disk."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING

import pyarrow.parquet as pq
from ndjson_arrow import ParquetFile

from lake.errors import AuditError
from transform.columns import arrow_schema

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from ndjson_arrow import Batch

    from lake.settings import ConvertSettings

FULL = 1.5
"""A file may grow to this many times its target before the next is begun ..."""
LEAST = 0.5
"""... and ends at its target if at least this many times the target is still to come."""


class OpenFile:
    """One Parquet file under construction, as all of the lake's files are written.

    Raises
    ------
    OSError
        From any method: the disk.
    """

    def __init__(self, path: Path, settings: ConvertSettings) -> None:
        self._row_group_bytes = settings.row_group_bytes
        self._file = ParquetFile(path, compression=settings.compression)
        self._columns: tuple[list[str], list[str]] = ([], [])
        self.path = path
        self.rows = 0

    @property
    def size(self) -> int:
        """Bytes on the disk: those of the row groups that have ended."""
        return self._file.size

    def write(self, batch: Batch) -> None:
        """Append the rows; the row group ends when it is large enough."""
        self._columns = (batch.names, batch.keys)
        self.rows += batch.rows
        self._file.write(batch)
        if self._file.row_group_bytes >= self._row_group_bytes:
            self._file.end_row_group()

    def close(self) -> None:
        """Write the last row group and the footer, from which Arrow learns the original keys too."""
        schema = arrow_schema(*self._columns).serialize()
        self._file.close({"ARROW:schema": base64.b64encode(schema).decode()})


class ParquetFiles:
    """Writes batches whose columns only ever grow; hands over each finished file.

    Parameters
    ----------
    folder
        Where the files are written; the receiver of a finished file removes it.
    settings
        Target size, size of row groups, compression.
    finished
        Called with the path of a whole file and the rows of its footer.
    """

    def __init__(self, folder: Path, settings: ConvertSettings, finished: Callable[[Path, int], None]) -> None:
        self._folder = folder
        self._settings = settings
        self._finished = finished
        self._file: OpenFile | None = None
        self._total_bytes = 0
        self._count = 0
        self.rows = 0
        """Rows given to ``write`` so far."""

    def write(self, batch: Batch, done: float = 1.0) -> None:
        """Append the rows; the file ends when it is large enough.

        ``done`` is the share of the input that has been read, to plan ahead.
        """
        if self._file is None:
            self._file = OpenFile(self._folder / f"{self._count}.parquet", self._settings)
            self._count += 1
        file, before = self._file, self._file.size
        self.rows += batch.rows
        file.write(batch)
        row_group_bytes = file.size - before
        if row_group_bytes:
            self._total_bytes += row_group_bytes
            target = self._settings.target_file_bytes
            coming = self._total_bytes * (1 - done) / done if done > 0 else target
            if file.size + row_group_bytes > FULL * target or (file.size >= target and coming >= LEAST * target):
                self.close()

    def close(self) -> None:
        """Finish the last file."""
        if self._file is None:
            return
        file, self._file = self._file, None
        file.close()
        rows = pq.read_metadata(file.path).num_rows
        if rows != file.rows:
            raise AuditError(f"the footer of {file.path.name} counts {rows} rows, {file.rows} were written: try again")
        self._finished(file.path, rows)
