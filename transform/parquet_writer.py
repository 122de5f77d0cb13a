"""Batches of a reader to Parquet files of the target size on the local disk."""

from __future__ import annotations

import base64
import os
import re
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pyarrow.parquet as pq
from ndjson_arrow import ParquetFile

from lake.errors import AuditError
from transform.columns import arrow_schema

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from ndjson_arrow import Batch

    from lake.settings import ConvertSettings

OS_ERROR = re.compile(r" \(os error (\d+)\)$")
"""The end of the text of every error that Rust's standard library gets from the operating system."""
MAX_FILL = 1.5
"""A file ends before it grows beyond this multiple of its target ..."""
MIN_REST = 0.5
"""... and already at its target, if at least this multiple of the target is expected to follow."""


class OpenFile:
    """One Parquet file while it is written; every file of the lake is written by it.

    Raises
    ------
    OSError
        From any method, with its ``errno``: the disk is full or broken.
    """

    def __init__(self, path: Path, settings: ConvertSettings) -> None:
        self._row_group_bytes = settings.row_group_bytes
        with _numbered_errors():
            self._file = ParquetFile(path, compression=settings.compression)
        self._columns: tuple[list[str], list[str]] = ([], [])
        self.path = path
        self.rows = 0

    @property
    def size(self) -> int:
        """Bytes on the disk: those of the finished row groups."""
        return self._file.size

    def write(self, batch: Batch) -> None:
        """Append the rows; the row group ends when it is large enough."""
        self._columns = (batch.names, batch.keys)
        self.rows += batch.rows
        with _numbered_errors():
            self._file.write(batch)
            if self._file.row_group_bytes >= self._row_group_bytes:
                self._file.end_row_group()

    def close(self) -> None:
        """Write the last row group and the footer, which holds the original keys for Arrow."""
        schema = arrow_schema(*self._columns).serialize()
        with _numbered_errors():
            self._file.close({"ARROW:schema": base64.b64encode(schema).decode()})


@contextmanager
def _numbered_errors() -> Iterator[None]:
    """An error of the operating system gets its number, which Rust has put at the end of its text only."""
    try:
        yield
    except OSError as error:
        number = OS_ERROR.search(str(error))
        if error.errno is None and number is not None:
            raise OSError(int(number.group(1)), os.strerror(int(number.group(1)))) from error
        raise


class ParquetFiles:
    """Writes batches, each of which has the columns of the one before and perhaps more; passes each finished file on.

    Parameters
    ----------
    folder
        Where the files are written.
    settings
        Target size, size of row groups, compression.
    on_finished
        Called with the path of a whole file and the rows of its footer; it removes the file.
    """

    def __init__(self, folder: Path, settings: ConvertSettings, on_finished: Callable[[Path, int], None]) -> None:
        self._folder = folder
        self._settings = settings
        self._on_finished = on_finished
        self._file: OpenFile | None = None
        self._total_bytes = 0
        self._count = 0
        self.rows = 0
        """Rows given to ``write`` so far."""

    def write(self, batch: Batch, read_share: float = 1.0) -> None:
        """Append the rows; the file ends when it is large enough.

        ``read_share`` is the share of the input that has been read so far: it tells how much output will follow.
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
            expected_bytes = self._total_bytes * (1 - read_share) / read_share if read_share > 0 else target
            full = file.size + row_group_bytes > MAX_FILL * target
            if full or (file.size >= target and expected_bytes >= MIN_REST * target):
                self.close()

    def close(self) -> None:
        """Finish the last file; raises ``AuditError`` when its footer counts other rows than were written."""
        if self._file is None:
            return
        file, self._file = self._file, None
        file.close()
        rows = pq.read_metadata(file.path).num_rows
        if rows != file.rows:
            raise AuditError(
                f"the footer of {file.path.name} counts {rows} rows, {file.rows} were written: the task is tried again"
            )
        self._on_finished(file.path, rows)
