"""A sample of each Parquet file's column chunks is decoded by pyarrow and compared with what the writer was given.

The reader digests the values of a chunk before they are written. Here the digest is computed again by other code, from
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
"""Bytes of each row's offset in Arrow's type utf8."""
NULL_LENGTH = struct.pack("<i", -1)
WHOLE_INPUT_BYTES = 4 << 20
"""Input of a task below which every chunk is decoded."""
MAX_CHUNKS_PER_SAMPLE = 64
"""One chunk in this number is decoded of a large task: docs/performance.md has the cost."""
WHOLE_ROW_GROUPS = 1
LATER_CHUNKS_PER_SAMPLE = 32
"""One in this number of the chunks of later row groups is decoded in a small task with several row groups."""
DECODED_BYTES = 16 << 20
"""Decoded at once of a column: a larger one is decoded in parts. Values, and Arrow's offsets for every row, count."""


@dataclass(frozen=True, slots=True)
class Sampling:
    """Which column chunks are decoded: one in ``chunks_per_sample``, and of each file at least one."""

    chunks_per_sample: int = 1
    seed: int = 0
    """Chooses the chunks; a repeated task chooses the same."""

    @classmethod
    def of(cls, task: Task) -> Sampling:
        """By the size of the task's input: a small task has few chunks."""
        size = sum(split.size for split in task.splits)
        share = min(MAX_CHUNKS_PER_SAMPLE, 1 + size // WHOLE_INPUT_BYTES)
        return cls(share, zlib.crc32(f"{task.manifest}-{task.number}".encode()))


class ChunkSample:
    """The sampled chunks of one file: their digests while it is written, and the comparison when it is finished."""

    def __init__(self, sampling: Sampling, file_number: int) -> None:
        self._sampling = sampling
        self._seed = sampling.seed + file_number
        self._first: int | None = None
        self._columns = 0
        self._digests: list[dict[int, Digest]] = [{}]
        self._rows = [0]

    def add(self, batch: Batch, columns: int) -> None:
        """Digest the sampled columns of a batch that is about to be written; it has ``columns`` columns."""
        self._columns = columns
        filled = batch.filled_columns
        if self._first is None:
            self._first = filled[self._seed % len(filled)] if filled else self._seed % columns
        digests, rows = self._digests[-1], self._rows[-1]
        # A column without a digest is all NULL so far: it costs nothing.
        started = {*filled, *digests}
        for index in filter(started.__contains__, self._sampled(len(self._rows) - 1)):
            digests[index] = batch.digest(index, digests.get(index) or null_digest(rows))
        self._rows[-1] += batch.rows

    def end_row_group(self) -> None:
        """The next batch is in another row group."""
        self._digests.append({})
        self._rows.append(0)

    def check(self, file: pq.ParquetFile, names: Sequence[str]) -> None:
        """Decode the sampled chunks of the finished file, whose batches had the columns ``names``.

        Raises ``AuditError``: a chunk does not hold the values that were given to the writer; a column with values is
        not in the file; or columns or row groups differ.
        """
        rows = [count for count in self._rows if count]
        metadata = file.metadata
        written = [metadata.row_group(group).num_rows for group in range(metadata.num_row_groups)]
        found = file.schema_arrow.names
        columns = set(found)
        # Readers count rows by the number of the whole file.
        same_rows = written == rows and metadata.num_rows == sum(rows)
        if [name for name in names if name in columns] != found or not same_rows:
            raise AuditError(
                "a Parquet file has other columns or numbers of rows than were written: the task is tried again"
            )
        for group, group_rows in enumerate(rows):
            for index in self._sampled(group):
                name, expected = names[index], self._digests[group].get(index) or null_digest(group_rows)
                if name not in columns:
                    if index in self._digests[group]:
                        raise _changed(name, group)
                    continue
                # The footer's size would not do: of a column with a dictionary it counts numbers instead of values.
                share = group_rows * DECODED_BYTES // (expected[1] + OFFSET_BYTES * group_rows)
                batches = file.iter_batches(max(1, min(share, group_rows)), [group], [name], use_threads=False)
                if digest(cast("pa.StringArray", batch.column(0)) for batch in batches) != expected:
                    raise _changed(name, group)

    def _sampled(self, group: int) -> range:
        """Numbers of the sampled columns of a row group; another one comes first in each."""
        if self._first is None:
            return range(0)
        share = self._sampling.chunks_per_sample
        if group >= WHOLE_ROW_GROUPS:
            share = max(share, LATER_CHUNKS_PER_SAMPLE)
        return range((self._first + group) % share if group else self._first % share, self._columns, share)


def _changed(name: str, group: int) -> AuditError:
    return AuditError(
        f"column {name} of row group {group} does not hold the values that were written to it: the task is tried again"
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
    """The 32-bit items of a buffer, ``more`` than the array has."""
    data = array.buffers()[buffer]
    first = 4 * array.offset
    return memoryview(data if data is not None else b"")[first : first + 4 * (len(array) + more)]
