from collections.abc import Mapping, Sequence
from os import PathLike
from typing import final

from typing_extensions import Buffer

REASONS: tuple[str, ...]
"""The closed list of reasons, in the order in which a line is judged."""

def column_name(key: str) -> str:
    """The column of a JSON key: `[a-z0-9_]`, at most 200 characters; does not depend on order, lane or split."""

def original_key(column: str) -> str | None:
    """The key whose column this is; None for a name that no key gives, and for a hashed (longer than 200) name."""

def detect_codec(head: bytes) -> str | None:
    """The codec ("gzip", "bzip2", "zstd") by the first 4 bytes of a file; None: it is not compressed.

    A compressed file is never split.
    """

@final
class Reject:
    """A line that is no row. Its place is a byte offset in the (inflated) file."""

    @property
    def source(self) -> str: ...
    @property
    def offset(self) -> int: ...
    @property
    def length(self) -> int:
        """Bytes, without the newline."""
    @property
    def reason(self) -> str: ...
    @property
    def line(self) -> bytes | None:
        """The line verbatim; None if it is longer than 64 KiB or reject_sample_bytes are used up."""

@final
class SplitCounts:
    """What became of one split. If `error` is None: lines = rows + sum of rejects + blank_lines, and all were read."""

    @property
    def source(self) -> str: ...
    @property
    def lines(self) -> int: ...
    @property
    def rows(self) -> int: ...
    @property
    def blank_lines(self) -> int: ...
    @property
    def rejects(self) -> dict[str, int]:
        """Reason -> count, exact whatever the size of the sample."""
    @property
    def bytes(self) -> int:
        """Bytes of the lines it owns, inflated, newlines included."""
    @property
    def inflated(self) -> str | None:
        """The codec: "gzip", "bzip2", "zstd", or None."""
    @property
    def error(self) -> str | None:
        """Why the file could not be read to its end ("truncated gzip at byte 1234"); its rows must not be used."""
    @property
    def first_reject(self) -> Reject | None: ...

@final
class Batch:
    """Rows as string columns: the known columns, `_rescued`, provenance (if wanted), then new ones as they were met.

    Its columns are for Arrow (`column`) or for Parquet (`ParquetFile.write`), once.

    The names of a later batch of the same Reader begin with those of an earlier one.
    """

    @property
    def rows(self) -> int: ...
    @property
    def names(self) -> list[str]: ...
    @property
    def keys(self) -> list[str]:
        """The original keys; "" for `_rescued`, `_source`, `_offset` and for a hashed known column not yet met."""
    def column(self, index: int) -> StringColumn:
        """Moves a column out.

        Raises
        ------
        IndexError
            There is no such column.
        ValueError
            The column was taken before.
        """

@final
class StringColumn:
    """A column of Arrow's type utf8, handed over once: `pyarrow.array(column)`."""

    def __arrow_c_array__(self, requested_schema: object | None = None) -> tuple[object, object]:
        """The Arrow PyCapsule interface; ValueError when it was called before."""

@final
class Reader:
    """Turns the bytes of one or many splits into string columns; one Reader fills one output file.

    open, then feed and read until done, then close; rows stay in the columns from split to split. It is used by one
    thread at a time and releases the GIL while it reads.

    Parameters
    ----------
    known_columns
        Encoded names, in order; they are in every Batch, first.
    column_limit
        Known and new columns together (not `_rescued` and provenance); what is beyond goes to `_rescued`.
    max_line_bytes
        A longer line (without its newline) is a reject; it is not kept while it is read.
    flush_bytes
        `read` gives a Batch as soon as the columns hold so many bytes.
    reject_sample_count, reject_sample_bytes
        How many rejects of each split are kept for `take_rejects`, and how many bytes of their lines. The others are
        only counted.
    provenance
        Adds the columns `_source` and `_arrived_at` (the texts given to `open`) and `_offset` (the line's byte offset
        in the inflated file, decimal).
    max_expansion, max_inflated_bytes
        A compressed file that inflates further (the ratio is looked at from 256 MiB inflated on) fails as a file.

    Raises
    ------
    ValueError
        A limit out of range, or a known column that is no column name.
    RuntimeError
        From any method: called out of order, or the reader itself failed (a bug), after which it cannot be used.
    """

    def __new__(
        cls,
        *,
        known_columns: Sequence[str] = (),
        column_limit: int = 1000,
        max_line_bytes: int = 16777216,
        flush_bytes: int = 67108864,
        reject_sample_count: int = 1000,
        reject_sample_bytes: int = 4194304,
        provenance: bool = False,
        max_expansion: int = 200,
        max_inflated_bytes: int = 274877906944,
    ) -> Reader: ...
    def open(self, source: str, *, start: int = 0, end: int | None = None, arrived_at: str | None = None) -> None:
        """Begins a split of a file: the lines whose first byte lies in [start, end), end=None being the file's end.

        If start > 0, feed the bytes from start - 1 on. A compressed file is only opened whole.
        """
    def feed(self, chunk: Buffer) -> None:
        """Hands over the next bytes of the file, when `needs_input`. Ignored once the split is done.

        `bytes` are not copied.
        """
    def end_of_input(self) -> None:
        """The file has no more bytes. Call `read` once more."""
    def read(self) -> Batch | None:
        """Reads what was fed: a full Batch (then call again), or None: more input is needed, or the split is done."""
    @property
    def done(self) -> bool:
        """The split is complete, or its file failed: nothing more is to be fed."""
    @property
    def needs_input(self) -> bool:
        """All that was fed is read and the split is not done."""
    def close(self) -> SplitCounts:
        """Ends the split; its rows stay. Closed before it is done, the counts carry an error."""
    def flush(self) -> Batch | None:
        """The rows that no Batch has brought yet; None if there are none. To be called after the last split."""
    def take_rejects(self) -> list[Reject]:
        """The sampled rejects since the last call."""

@final
class ParquetFile:
    """Writes batches to one Parquet file of optional strings, whose columns may grow until it is closed.

    Pages are compressed as soon as they are full and stay in memory until their row group ends. A column has its place
    in every row group: in those that ended before it was met, it is NULL, and stands at the end of the file.

    Parameters
    ----------
    path
        Written anew.
    compression
        "zstd" (level 1), "snappy" or "none".

    Raises
    ------
    ValueError
        No such compression.
    OSError
        From any method: what the operating system says. The file is not to be used, nor this object.
    RuntimeError
        From any method: called after `close` or an error, or the writer itself failed (a bug).
    """

    def __new__(
        cls, path: PathLike[str], *, compression: str = "zstd", encoding: str = "delta_length"
    ) -> ParquetFile: ...
    @property
    def size(self) -> int:
        """Bytes of the file so far, without the row group under construction."""
    @property
    def row_group_bytes(self) -> int:
        """Bytes of the batches that the row group under construction was made of, not encoded nor compressed."""
    def write(self, batch: Batch) -> None:
        """Moves the columns out of `batch` and appends its rows.

        Raises
        ------
        RuntimeError
            The columns do not begin with those of the batch before, or one was taken already.
        """
    def end_row_group(self) -> None:
        """Writes the rows since the last row group to the file; nothing if there are none."""
    def close(self, metadata: Mapping[str, str] | None = None) -> None:
        """Writes what is left and the footer; `metadata` are its keys and values."""
