from collections.abc import Mapping, Sequence
from os import PathLike
from typing import final

from typing_extensions import Buffer

__all__ = [
    "REASONS",
    "Batch",
    "ParquetFile",
    "Reader",
    "Reject",
    "SplitCounts",
    "StringColumn",
    "can_split",
    "column_name",
    "detect_codec",
    "original_key",
]

REASONS: tuple[str, ...]
"""All reasons of rejects, in the order in which a line is checked. They are data: stored results contain them."""

def column_name(key: str) -> str:
    """The column name of a JSON key: `[a-z0-9_]`, at most 200 characters. It depends on the key alone.

    The rule is in the project's docs/columns.md. The Glue Data Catalog allows 255 bytes for a column name.
    """

def original_key(column: str) -> str | None:
    """The JSON key of a column name; None if no key has this name, or if the name is hashed.

    The name of a key is hashed if it would be longer than 200 characters or have the shape of a hashed name.
    """

def detect_codec(head: bytes) -> str | None:
    """The codec of a file by its first 4 bytes: "gzip", "bzip2" or "zstd"; None if it is not compressed.

    A compressed file can only be read whole: it cannot be split.
    """

def can_split(head: bytes) -> bool:
    """Whether a file can be read in parts: it is not compressed and not a JSON array.

    `head` is the start of the file, at least 4 bytes of it. A file whose start is blank is reported as not divisible.
    """

@final
class Reject:
    """A rejected line, or element of an array. Offset and length are bytes of the file, after decompression."""

    @property
    def source(self) -> str:
        """The text that was passed to `Reader.open`."""
    @property
    def offset(self) -> int:
        """The offset of the line's first byte in the file."""
    @property
    def length(self) -> int:
        """Bytes of the line without its newline."""
    @property
    def reason(self) -> str:
        """One of `REASONS`."""
    @property
    def line(self) -> bytes | None:
        """The line verbatim, without its newline.

        None if it is too long for a row, if it is longer than 64 KiB, or if it is longer than what is left of
        `reject_sample_bytes`.
        """
    @property
    def head(self) -> bytes:
        """Up to 64 KiB of the start of a split's first reject that is not kept, unless it is too long an element."""

@final
class SplitCounts:
    """The outcome of one split. If `error` is None, it was read completely.

    Always: lines = rows + sum of rejects + blank_lines. Elements of arrays and concatenated values count as lines.
    """

    @property
    def source(self) -> str:
        """The text that was passed to `Reader.open`."""
    @property
    def lines(self) -> int:
        """Lines whose first byte is in the range of the split."""
    @property
    def rows(self) -> int: ...
    @property
    def blank_lines(self) -> int: ...
    @property
    def rejects(self) -> dict[str, int]:
        """The number of rejects for each reason. All are counted, whether or not they are in the sample."""
    @property
    def bytes(self) -> int:
        """Bytes of all lines, after decompression, newlines included, and of what is between elements."""
    @property
    def codec(self) -> str | None:
        """The codec of the file: "gzip", "bzip2" or "zstd"; None if it is not compressed."""
    @property
    def error(self) -> str | None:
        """Why the file was not read to its end, for example "truncated gzip at byte 1234".

        The rows of the split are incomplete and must not be used. None if there was no error.
        """
    @property
    def first_reject(self) -> Reject | None:
        """The first reject; None if there is none, or if `reject_sample_count` is 0."""
    @property
    def elements(self) -> bool:
        """Whether the file is an array to its end, or concatenated: it has elements instead of lines."""

@final
class Batch:
    """Rows as string columns.

    Their order is: the known columns, `_rescued`, the provenance columns if there are any, then the new columns as the
    Reader found them. A later batch of the same Reader starts with the columns of an earlier one.

    A column can be moved out once: to Arrow by `column`, or with all others to Parquet by `ParquetFile.write`.
    """

    @property
    def rows(self) -> int: ...
    @property
    def names(self) -> list[str]:
        """The names of the columns."""
    @property
    def keys(self) -> list[str]:
        """The JSON keys of the columns.

        "" for `_rescued` and the provenance columns, and for a known column with a hashed name whose key is not found
        yet.
        """
    @property
    def filled_columns(self) -> list[int]:
        """The numbers of the columns that have a value in this batch and were not moved out, in order."""
    def column(self, index: int) -> StringColumn:
        """Moves a column out of the batch.

        Raises
        ------
        IndexError
            There is no such column.
        ValueError
            The column was already taken.
        """
    def digest(self, index: int, previous: tuple[int, int, int, int]) -> tuple[int, int, int, int]:
        """The digest of a column in this batch and in those before it.

        `previous` is the digest of those before, at first `(0, 0, 0, 0)`. A digest is the number of NULLs, the bytes of
        all values, and two checksums (CRC-32): one of the values' lengths (little-endian, four bytes for each row, -1
        for NULL), one of the values in order.

        Raises
        ------
        IndexError
            There is no such column, or it was already taken.
        """

@final
class StringColumn:
    """A column of Arrow's type utf8, which can be exported once: `pyarrow.array(column)`."""

    def __arrow_c_array__(self, requested_schema: object | None = None) -> tuple[object, object]:
        """The Arrow PyCapsule interface. `requested_schema` is ignored: the type is always utf8.

        Raises
        ------
        ValueError
            The column was already exported.
        """

@final
class Reader:
    """Turns the bytes of one or many splits into string columns. One Reader fills one output file.

    For each split call `open`, then `feed` and `read` until `done`, then `close`. Rows stay in the columns from one
    split to the next. Only one thread may use a Reader at a time. It releases the GIL while it reads.

    Parameters
    ----------
    known_columns
        Column names, in order. They are the first columns of every Batch. The default is none.
    column_limit
        Maximum number of columns: known and new ones, without `_rescued` and the provenance columns. All known columns
        exist, even if they are more. Members beyond the limit go to `_rescued`.
    max_line_bytes
        A line with more bytes, without its newline, is rejected. It is not kept in memory while it is read.
    concatenated
        Rows need no newline between them: a file is a sequence of JSON values. It can only be read whole.
    flush_bytes
        `read` returns a Batch as soon as the columns can take this many bytes: each value with its length (4 bytes),
        8 bytes for each row, and one bit in each row for every column that the limit allows, because any row can be
        the one that brings all of them.
    reject_sample_count
        Maximum number of rejects kept per split for `take_rejects`. All others are only counted.
    reject_sample_bytes
        Maximum number of bytes of their lines kept per split.
    provenance
        Adds the columns `_source` and `_arrived_at` (the texts passed to `open`) and `_offset` (the byte offset of the
        line in the file, after decompression, decimal).
    max_expansion
        A compressed file fails if each of its bytes inflates to this many or more: sparse rows have ratios up to 1,000,
        and gzip none above 1,032. It is checked above 256 MiB inflated: a smaller file does no harm.
    max_inflated_bytes
        A compressed file fails if it inflates to more bytes.

    Raises
    ------
    ValueError
        `max_line_bytes` or `flush_bytes` is not between 1 and 1,073,741,823 (Arrow's type utf8 has offsets of 32 bits),
        or a known column is not a valid column name or is passed twice.
    RuntimeError
        From any method: it was called out of order; or there is a bug in the reader, after which it cannot be used.
    """

    def __new__(
        cls,
        *,
        known_columns: Sequence[str] = ...,
        column_limit: int = 1000,
        max_line_bytes: int = 16777216,
        concatenated: bool = False,
        flush_bytes: int = 67108864,
        reject_sample_count: int = 1000,
        reject_sample_bytes: int = 4194304,
        provenance: bool = False,
        max_expansion: int = 2000,
        max_inflated_bytes: int = 274877906944,
    ) -> Reader: ...
    def open(self, source: str, *, start: int = 0, end: int | None = None, arrived_at: str | None = None) -> None:
        """Opens a split of a file: the lines whose first byte is in [start, end), in bytes.

        `end` is the end of the file by default. If start > 0, the first byte to feed is the byte at start - 1. A file
        that is compressed or begins with a JSON array must be opened without `start` and `end`.
        `arrived_at` is the text of the column `_arrived_at`.
        """
    def feed(self, chunk: Buffer) -> None:
        """Passes the next bytes of the file. Call it only if `needs_input`. It is ignored if the split is done.

        `bytes` are not copied; the bytes of any other buffer are.
        """
    def end_of_input(self) -> None:
        """The file has no more bytes. Call `read` until it returns None."""
    def read(self) -> Batch | None:
        """Reads the bytes that were fed.

        Returns a Batch if the columns are full: call `read` again. Returns None if the split is done or needs input.
        """
    @property
    def done(self) -> bool:
        """Whether the split is read completely, or has failed. It needs no more input."""
    @property
    def needs_input(self) -> bool:
        """Whether all bytes that were fed are read, and the split is not done."""
    def close(self) -> SplitCounts:
        """Closes the split. Its rows stay in the columns. If it is not done, the counts have an error."""
    def flush(self) -> Batch | None:
        """Returns the rows that no Batch has returned yet; None if there are none. Call it after the last split."""
    def take_rejects(self) -> list[Reject]:
        """Returns the sampled rejects since the last call."""

@final
class ParquetFile:
    """Writes batches to one Parquet file of optional strings, to which columns can be added until it is closed.

    Pages are compressed as soon as they are full and stay in memory until their row group ends. A column without a
    value in the whole file is left out, but for `_rescued` and the provenance columns; every other column has a chunk
    in every row group. In the row groups that ended before its first value it is NULL; these chunks are at the end of
    the file.

    A column chunk whose first values repeat has each distinct value once, up to 32,768 values or 512 KiB; after that,
    and in all other chunks, values are plain.

    The footer has the minimum and the maximum of each chunk, cut to 64 bytes. A bound that was cut is marked as not
    exact and lies outside of the values; a maximum that cannot be cut so is left out.

    Parameters
    ----------
    path
        The file to create. A file that exists is overwritten.
    compression
        "zstd", "snappy" or "none".
    zstd_level
        1 to 19. Level 9 makes files 4 to 13 % smaller at about a quarter of the speed.

    Raises
    ------
    ValueError
        `compression` is unknown, or `zstd_level` out of range.
    OSError
        From any method: the operating system reports an error. Neither the file nor this object can be used.
    RuntimeError
        From any method: it was called after `close` or an error; or there is a bug in the writer.
    """

    def __new__(
        cls,
        path: PathLike[str] | str,
        *,
        compression: str = "zstd",
        zstd_level: int = 1,
    ) -> ParquetFile: ...
    @property
    def size(self) -> int:
        """Bytes of the finished row groups and about those of their part of the footer."""
    @property
    def row_group_bytes(self) -> int:
        """Bytes of the open row group before encoding and compression: values with their lengths, and bitmaps."""
    @property
    def held_bytes(self) -> int:
        """Bytes of the open row group in memory: finished pages after compression, and the open page of each column."""
    @property
    def index_bytes(self) -> int:
        """About the bytes of memory that the pages of the finished row groups, but the first of each column chunk, take
        until the footer is written."""
    @property
    def columns(self) -> list[int]:
        """The numbers, in the batches, of the columns that the file has so far, in order."""
    def write(self, batch: Batch, more: int = ...) -> None:
        """Moves the columns out of `batch` and appends its rows.

        `more` batches like this one are expected to follow, by default enough for any row group: a column of which few
        values will come gets no dictionary.

        Raises
        ------
        RuntimeError
            The batch does not start with the columns of the previous batch, or a column was already taken.
        """
    def end_row_group(self) -> None:
        """Writes the open row group to the file. Does nothing if it has no rows."""
    def close(self, metadata: Mapping[str, str] | None = None, field_ids: Sequence[int] | None = None) -> None:
        """Writes the open row group and the footer, with `metadata` as the file's key-value pairs.

        `field_ids`: Parquet's field ids, one for each of `columns`; by default the columns have none.

        Raises
        ------
        RuntimeError
            The number of field ids is not the number of columns.
        """
