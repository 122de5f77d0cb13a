"""Batches of a reader to Parquet files of the target size on the local disk."""

import base64
import os
import sys
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from ndjson_arrow import Batch, ParquetFile, column_name

from lake.ledger.datasets import ADDED_COLUMNS, field_id
from lake.settings import ConvertSettings
from transform.chunk_sample import ChunkSample, Sampling

MAX_ROW_GROUP_ROWS = 1 << 20
"""Rows of one row group, however few bytes they have: pyarrow's default. What decodes a column chunk holds it whole."""
MAX_HELD_BYTES = 48 << 20
"""Bytes of one row group in memory: data that hardly compress, or columns of which no page is full, end it early."""
MAX_METADATA_BYTES = 64 << 20
"""Footer of one file in the memory of its writer and its readers: what it says of chunks and pages."""
CHUNK_METADATA_BYTES = 1 << 10
"""About the bytes of memory of a column chunk and its first page."""
MAX_FILL = 1.5
"""A file ends before it grows beyond this multiple of its target ..."""
MIN_REST = 0.5
"""... and already at its target, if at least this multiple of the target is expected to follow."""

MIN_READ_SHARE = 0.001
"""Below it, the size of what follows cannot be estimated."""


class OpenFile:
    """One Parquet file while it is written; every file of the lake is written by it.

    Raises ``OSError``: from any method, with its ``errno``: the disk is full or broken.
    """

    def __init__(
        self,
        path: Path,
        settings: ConvertSettings,
        sample: ChunkSample,
        unnumbered: frozenset[str] | None = None,
    ) -> None:
        self._sample = sample
        self._unnumbered = unnumbered
        self._row_group_bytes = settings.row_group_bytes
        self._file = ParquetFile(path, compression=settings.compression, zstd_level=settings.zstd_level)
        self._columns: tuple[list[str], list[str]] = ([], [])
        self._row_groups = 1
        self._row_group_rows = 0
        self.path = path
        self.rows = 0

    @property
    def size(self) -> int:
        """Bytes of the finished row groups and of their part of the footer."""
        return self._file.size

    def metadata_bytes_with(self, batch: Batch) -> int:
        """Bytes of memory. A column that comes with the batch gets a chunk in each row group."""
        chunks = self._row_groups * len({*self._file.columns, *batch.filled_columns})
        return CHUNK_METADATA_BYTES * chunks + self._file.index_bytes

    def write(self, batch: Batch, more: int = sys.maxsize) -> None:
        """Append the rows; the row group ends when it is large enough. About ``more`` such batches will follow."""
        self._columns = (batch.names, batch.keys)
        self.rows += batch.rows
        self._row_group_rows += batch.rows
        # Writing moves the values out of the batch.
        self._sample.add(batch, len(batch.names))
        self._file.write(batch, more)
        if (
            self._file.row_group_bytes >= self._row_group_bytes
            or self._file.held_bytes >= MAX_HELD_BYTES
            or self._row_group_rows >= MAX_ROW_GROUP_ROWS
        ):
            self._file.end_row_group()
            self._sample.end_row_group()
            self._row_groups += 1
            self._row_group_rows = 0

    def close(self) -> None:
        """Write the last row group and the footer, which holds the original keys for Arrow.

        The columns of which the file has no value are left out: readers by name see NULL.
        """
        names, keys = ([values[index] for index in self._file.columns] for values in self._columns)
        schema = pa.schema(
            pa.field(name, pa.string(), metadata=_metadata(name, key)) for name, key in zip(names, keys, strict=True)
        ).serialize()
        numbered = self._unnumbered is not None and not self._unnumbered & {*names}
        field_ids = [field_id(name) for name in names] if numbered else None
        self._file.close({"ARROW:schema": base64.b64encode(schema).decode()}, field_ids)

    def check(self) -> None:
        """Raises ``AuditError`` when the finished file does not hold what was written."""
        # The path as bytes: pyarrow takes a text such as `file:x` for a URI, and encodes only UTF-8.
        with pa.OSFile(os.fsencode(self.path), "r") as data:  # type: ignore[arg-type]
            self._sample.check(pq.ParquetFile(data), self._columns[0])


def _metadata(name: str, key: str) -> dict[bytes, bytes] | None:
    # A known column with a hashed name has no key until the input has it again.
    return None if name in ADDED_COLUMNS or (not key and name != column_name("")) else {b"original_key": key.encode()}


class ParquetFiles:
    """Writes batches, each of which has the columns of the one before and perhaps more; passes each finished file on.

    ``folder``: where the files are written. ``settings``: target size, size of row groups, compression, encoding.
    ``on_finished``: called with the path of a whole file and the rows of its footer; it removes the file. ``sampling``:
    which column chunks of the finished files are decoded and compared; by default all. ``unnumbered``: as in ``Task``.
    """

    def __init__(
        self,
        folder: Path,
        settings: ConvertSettings,
        on_finished: Callable[[Path, int], None],
        sampling: Sampling = Sampling(),  # noqa: B008  (frozen)
        unnumbered: frozenset[str] | None = None,
    ) -> None:
        self._folder = folder
        self._settings = settings
        self._on_finished = on_finished
        self._sampling = sampling
        self._unnumbered = unnumbered
        self._file: OpenFile | None = None
        self._total_bytes = 0
        self._count = 0
        self._batches = 0

    def write(self, batch: Batch, read_share: float = 1.0) -> None:
        """Append the rows; the file ends when it is large enough.

        ``read_share`` is the share of the input that has been read so far: it shows how much output will follow.
        """
        if self._file is not None and self._file.metadata_bytes_with(batch) > MAX_METADATA_BYTES:
            self.close()
        if self._file is None:
            sample = ChunkSample(self._sampling, self._count)
            path = self._folder / f"{self._count}.parquet"
            self._file = OpenFile(path, self._settings, sample, self._unnumbered)
            self._count += 1
        file, before, read_share = self._file, self._file.size, max(read_share, MIN_READ_SHARE)
        self._batches += 1
        file.write(batch, round(self._batches * (1 - read_share) / read_share))
        row_group_bytes = file.size - before
        if row_group_bytes:
            self._total_bytes += row_group_bytes
            target = self._settings.target_file_bytes
            expected_bytes = self._total_bytes * (1 - read_share) / read_share
            full = file.size + min(row_group_bytes, expected_bytes) > MAX_FILL * target
            if full or (file.size >= target and expected_bytes >= MIN_REST * target):
                self.close()

    def close(self) -> None:
        """Finish the last file; raises ``AuditError`` when it does not hold what was written."""
        if self._file is None:
            return
        file, self._file = self._file, None
        file.close()
        file.check()
        self._on_finished(file.path, file.rows)
