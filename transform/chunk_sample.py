"""Decodes a sample of each Parquet file's column chunks with pyarrow, and compares it with the writer's input.

The reader computes a digest of a chunk's values before they are written. Other code computes the digest again here from
what pyarrow decodes from the finished file: pages, definition levels, lengths and values.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, cast

import pyarrow.compute as pc

from lake.errors import AuditError

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq
    from ndjson_arrow import Batch

    from transform.task_model import Task

Digest = tuple[int, int, int, int]
"""Number of NULLs, bytes of all values, CRC-32 of the lengths (-1 for NULL), CRC-32 of the values."""
OFFSET_BYTES = 4
"""Bytes of the offset of each row in Arrow's type utf8."""
NULL_LENGTH = struct.pack("<i", -1)
WHOLE_INPUT_BYTES = 4 << 20
"""Input of a task below which every chunk is decoded."""
MAX_CHUNKS_PER_SAMPLE = 64
"""In a large task, one chunk in this number is decoded: docs/performance.md has the cost."""
WHOLE_ROW_GROUPS = 1
LATER_CHUNKS_PER_SAMPLE = 32
"""In later row groups of a small task, one chunk in this number is decoded."""
DECODED_BYTES = 16 << 20
"""Maximum decoded at once of a column, counting values and Arrow's offsets; a larger one is decoded in parts."""


@dataclass(frozen=True, slots=True)
class Sampling:
    """Which column chunks are decoded: one of ``chunks_per_sample``, but at least one of each file."""

    chunks_per_sample: int = 1
    seed: int = 0
    """Chooses the chunks; a repeated task chooses the same ones."""

    @classmethod
    def of(cls, task: Task) -> Sampling:
        """The sampling for a task, by the size of its input: a small task has few chunks."""
        size = sum(split.size for split in task.splits)
        share = min(MAX_CHUNKS_PER_SAMPLE, 1 + size // WHOLE_INPUT_BYTES)
        return cls(share, zlib.crc32(f"{task.manifest}-{task.number}".encode()))


class ChunkSample:
    """The sampled chunks of one file: digests while it is written, and a comparison when it is finished."""

    def __init__(self, sampling: Sampling, file_number: int) -> None:
        self._sampling = sampling
        self._seed = sampling.seed + file_number
        self._first: int | None = None
        self._columns = 0
        self._digests: list[dict[int, Digest]] = [{}]
        self._rows = [0]

    def add(self, batch: Batch, columns: int) -> None:
        """Compute digests for the sampled columns of a batch with ``columns`` columns that is about to be written."""
        self._columns = columns
        filled = batch.filled_columns
        if self._first is None:
            self._first = filled[self._seed % len(filled)] if filled else self._seed % columns
        digests, rows = self._digests[-1], self._rows[-1]
        # A column without a digest is all NULL so far, and needs no work.
        started = {*filled, *digests}
        for index in filter(started.__contains__, self._sampled(len(self._rows) - 1)):
            digests[index] = batch.digest(index, digests.get(index) or null_digest(rows))
        self._rows[-1] += batch.rows

    def end_row_group(self) -> None:
        """End the row group: the next batch is in another one."""
        self._digests.append({})
        self._rows.append(0)

    def check(self, file: pq.ParquetFile, names: Sequence[str]) -> None:
        """Decode the sampled chunks of the finished file, whose batches had the columns ``names``.

        Raises ``AuditError`` if a chunk differs from the values that were given to the writer, if a column with values
        is not in the file, or if columns or row groups differ.
        """
        rows = [count for count in self._rows if count]
        metadata = file.metadata
        written = [metadata.row_group(group).num_rows for group in range(metadata.num_row_groups)]
        found = file.schema_arrow.names
        columns = set(found)
        # Some readers use the row count of the whole file, so it is compared as well.
        same_rows = written == rows and metadata.num_rows == sum(rows)
        if [name for name in names if name in columns] != found or not same_rows:
            raise AuditError(
                "columns or row counts of a Parquet file are not those that were written: the task is retried"
            )
        for group, group_rows in enumerate(rows):
            for index in self._sampled(group):
                name, expected = names[index], self._digests[group].get(index) or null_digest(group_rows)
                if name not in columns:
                    if index in self._digests[group]:
                        raise _changed(name, group)
                    continue
                # Not the footer's size: for a column with a dictionary it counts dictionary indexes instead of values.
                share = group_rows * DECODED_BYTES // (expected[1] + OFFSET_BYTES * group_rows)
                batches = file.iter_batches(max(1, min(share, group_rows)), [group], [name], use_threads=False)
                if digest(cast("pa.StringArray", batch.column(0)) for batch in batches) != expected:
                    raise _changed(name, group)

    def _sampled(self, group: int) -> range:
        """Numbers of the sampled columns of a row group; each row group begins with another column."""
        if self._first is None:
            return range(0)
        share = self._sampling.chunks_per_sample
        if group >= WHOLE_ROW_GROUPS:
            share = max(share, LATER_CHUNKS_PER_SAMPLE)
        return range((self._first + group) % share if group else self._first % share, self._columns, share)


def _changed(name: str, group: int) -> AuditError:
    return AuditError(
        f"column {name} of row group {group} does not hold the values that were written to it: the task is retried"
    )


def digest(chunks: Iterable[pa.StringArray]) -> Digest:
    """The digest of consecutive Arrow arrays of type utf8."""
    nulls = size = lengths_crc = values_crc = 0
    for chunk in chunks:
        lengths = pc.binary_length(chunk).fill_null(-1)
        nulls += chunk.null_count
        lengths_crc = zlib.crc32(_items(lengths, 1), lengths_crc)
        start, end = (struct.unpack_from("<i", _items(chunk, 1, 1), at)[0] for at in (0, 4 * len(chunk)))
        data = chunk.buffers()[2]
        values_crc = zlib.crc32(memoryview(data if data is not None else b"")[start:end], values_crc)
        size += end - start
    return nulls, size, lengths_crc, values_crc


@lru_cache(maxsize=256)
def null_digest(rows: int) -> Digest:
    """The digest of ``rows`` NULLs."""
    return (rows, 0, zlib.crc32(NULL_LENGTH * rows), 0)


def _items(array: pa.Array[Any], buffer: int, more: int = 0) -> memoryview:
    """The 32-bit items of a buffer, with ``more`` items than the array has."""
    data = array.buffers()[buffer]
    first = 4 * array.offset
    return memoryview(data if data is not None else b"")[first : first + 4 * (len(array) + more)]
