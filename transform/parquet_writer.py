"""Batches of string columns to Parquet files on the local disk.

A Parquet file has one schema, but columns are found while reading. So a file under construction is a row of segments,
each with the columns known when it was begun; a file that needed more than one is merged into one with all columns
when it is full. Every row is rewritten once at most, and drifting keys do not give small files.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import pyarrow as pa
import pyarrow.parquet as pq

from lake.errors import AuditError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from lake.settings import ConvertSettings

FULL = 1.5
"""A file may grow to this many times its target before the next is begun ..."""
LEAST = 0.5
"""... and ends at its target if at least this many times the target is still to come."""
LEAST_PAGE_ROWS = 32 << 10
"""A data page ends at 1 MiB, looked at whenever so many rows more are in it: long values make larger pages ..."""
MOST_PAGE_ROWS = 1 << 20
"""... and it ends here, however little they take."""


@dataclass(slots=True)
class _Segment:
    path: Path
    schema: pa.Schema
    sink: pa.NativeFile
    writer: pq.ParquetWriter
    rows: int = 0

    def close(self) -> None:
        self.writer.close()
        self.sink.close()


class ParquetFiles:
    """Writes batches whose columns only ever grow; hands over each finished file.

    Parameters
    ----------
    folder
        Where the files are written; the receiver of a finished file removes it.
    settings
        Target size, compression.
    finished
        Called with the path of a whole file and the rows of its footer.
    """

    def __init__(self, folder: Path, settings: ConvertSettings, finished: Callable[[Path, int], None]) -> None:
        self._folder = folder
        self._settings = settings
        self._finished = finished
        self._segments: list[_Segment] = []
        self._closed_bytes = 0
        self._total_bytes = 0
        self._last_bytes = 0
        self._count = 0
        self.rows = 0
        """Rows given to ``write`` so far."""

    def write(self, batch: pa.RecordBatch) -> None:
        """Append the batch as one row group."""
        segment = self._segment(batch.schema)
        before = segment.sink.tell()
        segment.writer.write_table(pa.Table.from_batches([batch]), row_group_size=max(batch.num_rows, 1))
        segment.rows += batch.num_rows
        self.rows += batch.num_rows
        self._last_bytes = segment.sink.tell() - before
        self._total_bytes += self._last_bytes

    def end_full_file(self, done: float = 1.0) -> None:
        """Finish the file if it is large enough; ``done`` is the share of the input that has been read, to plan ahead.

        Not part of ``write``: merging takes the memory of a row group, and by now the caller has let go of the batch.
        """
        size, target = self._closed_bytes + self._segments[-1].sink.tell(), self._settings.target_file_bytes
        coming = self._total_bytes * (1 - done) / done if done > 0 else target
        if size + self._last_bytes > FULL * target or (size >= target and coming >= LEAST * target):
            self._roll()

    def close(self) -> None:
        """Finish the last file."""
        if self._segments:
            self._roll()

    def _segment(self, schema: pa.Schema) -> _Segment:
        if self._segments:
            last = self._segments[-1]
            if last.schema.equals(schema):
                return last
            last.close()
            self._closed_bytes += last.path.stat().st_size
        segment = self._open(schema)
        self._segments.append(segment)
        return segment

    def _open(self, schema: pa.Schema) -> _Segment:
        path = self._folder / f"{self._count}.parquet"
        self._count += 1
        sink = pa.OSFile(str(path), "wb")
        return _Segment(path, schema, sink, open_writer(sink, schema, self._settings.compression))

    def _roll(self) -> None:
        segments = self._segments
        segments[-1].close()
        self._segments = []
        self._closed_bytes = 0
        path = segments[0].path if len(segments) == 1 else self._merge(segments)
        rows = pq.read_metadata(path).num_rows
        if rows != sum(segment.rows for segment in segments):
            raise AuditError(f"the footer of {path.name} counts {rows} rows, not those written: try again")
        self._finished(path, rows)

    def _merge(self, segments: list[_Segment]) -> Path:
        schema = segments[-1].schema
        merged = self._open(schema)
        for segment in segments:
            file = pq.ParquetFile(segment.path)
            for group in range(file.num_row_groups):
                table = _widen(file.read_row_group(group, use_threads=False), schema)
                merged.writer.write_table(table, row_group_size=max(table.num_rows, 1))
                # Not kept while the next one is read.
                del table
            file.close()
            segment.path.unlink()
        merged.close()
        return merged.path


def open_writer(sink: pa.NativeFile, schema: pa.Schema, compression: str) -> pq.ParquetWriter:
    """A writer as all of the lake's files are written by; ``compression`` as pyarrow names it."""
    return pq.ParquetWriter(
        sink,
        schema,
        compression=cast("Any", compression),
        compression_level=1 if compression == "zstd" else None,
        use_dictionary=False,
        write_statistics=True,
        write_batch_size=LEAST_PAGE_ROWS,
        max_rows_per_page=MOST_PAGE_ROWS,
    )


def _widen(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """The table with every column of the schema, those it lacks as NULL."""
    present = set(table.column_names)
    # One for all: of hundreds of columns each with NULLs of its own, these would take more memory than the rows.
    missing = pa.nulls(table.num_rows, pa.string())
    columns = [table.column(field.name) if field.name in present else missing for field in schema]
    return pa.table(columns, schema=schema)
