"""A file as an Arrow stream of string columns. Needs pyarrow, which nothing else in this package does."""

from __future__ import annotations

import tempfile
from contextlib import ExitStack, contextmanager
from os import PathLike, fspath
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, BinaryIO

from ndjson_arrow._formats import find_other_format
from ndjson_arrow._native import Batch, Reader, Reject

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    import pyarrow as pa

CHUNK_BYTES = 4 << 20
ALL = (1 << 63) - 1
"""No limit: every reject is passed on, and the rejects of one chunk are in memory at a time."""


class RejectedLineError(ValueError):
    """A line is not a row, and the caller takes no rejects; ``looks_like`` says what the file seems to be instead."""

    def __init__(self, reject: Reject, looks_like: str | None = None) -> None:
        advice = looks_like or "pass rejects=… to read the other lines, for example the append of a list"
        super().__init__(f"{reject.source}: the line at byte {reject.offset:,} is not a row: {reject.reason}; {advice}")
        self.reject = reject

    def __reduce__(self) -> tuple[object, ...]:
        """In another process it has a copy of the reject, which is a native object."""
        copy = SimpleNamespace(**{name: getattr(self.reject, name) for name in dir(Reject) if not name.startswith("_")})
        return ValueError.__new__, (type(self), *self.args), {"reject": copy}


class UnreadableFileError(ValueError):
    """The file cannot be read to its end, for example because it is truncated: the rows so far are incomplete."""


def read(
    source: str | PathLike[str] | BinaryIO,
    *,
    columns: Sequence[str] | None = None,
    rejects: Callable[[Reject], object] | None = None,
    column_limit: int = 1000,
    max_line_bytes: int = 16 << 20,
    concatenated: bool = False,
    batch_bytes: int = 64 << 20,
) -> pa.RecordBatchReader:
    """Read rows of JSON, compressed or not, as record batches of strings; Polars and DuckDB take them without a copy.

    The file has one object on each line, or is one array of objects.

    The file is read twice, because the schema of a stream cannot change: first for its columns, then for its rows. It
    must not change meanwhile. A file object that cannot seek is copied to a temporary file.

    Parameters
    ----------
    source
        A path, or a file object in binary mode, which is read from its current position and left open.
    columns
        Names of columns, as `column_name` returns them. The file is then read once, and only these are columns.
    rejects
        Called once with each line that is not a row, at the latest with the batch of the rows around it. None: the
        first such line is an error.
    column_limit
        Maximum number of columns that are taken from the file, in the order in which they occur.
    max_line_bytes
        A line with more bytes, without its newline, is rejected.
    concatenated
        Rows need no newline between them: the file is a sequence of JSON objects, on one line or printed over many.
    batch_bytes
        A record batch is passed on as soon as it takes about this many bytes; memory holds one or two.

    Returns
    -------
    pyarrow.RecordBatchReader
        All columns are of the type string. Members that have no column are in the last one, `_rescued`: the text of a
        JSON object, or NULL.

    Raises
    ------
    RejectedLineError
        While it is read: a line is not a row, and `rejects` is None.
    UnreadableFileError
        While it is read, and before that if it is read for its columns: it is truncated, for example.
    ValueError
        `columns` has an invalid name or one twice, or a limit is out of range.
    OSError
        The file cannot be opened or read.
    """
    import pyarrow as pa  # noqa: PLC0415 (the reader itself needs no pyarrow)

    # Limits and names are checked before the file is opened.
    Reader(known_columns=columns or (), max_line_bytes=max_line_bytes, flush_bytes=batch_bytes)
    with ExitStack() as stack:
        name = fspath(source) if isinstance(source, str | PathLike) else str(getattr(source, "name", "<file>"))
        file = stack.enter_context(_opened(source, twice=columns is None))
        start = file.tell() if columns is None else 0
        if columns is None:
            columns = _find_columns(name, file, column_limit, max_line_bytes, concatenated=concatenated)
            file.seek(start)
        reader = Reader(
            known_columns=columns,
            column_limit=len(columns),
            max_line_bytes=max_line_bytes,
            concatenated=concatenated,
            flush_bytes=batch_bytes,
            reject_sample_count=ALL,
            reject_sample_bytes=ALL,
        )
        schema = pa.schema([(column, pa.string()) for column in (*columns, "_rescued")])
        opened = stack.pop_all()
    batches = _record_batches(opened, reader, name, file, schema, rejects, concatenated=concatenated)
    return pa.RecordBatchReader.from_batches(schema, batches)


def _record_batches(
    opened: ExitStack,
    reader: Reader,
    name: str,
    file: BinaryIO,
    schema: pa.Schema,
    rejects: Callable[[Reject], object] | None,
    *,
    concatenated: bool,
) -> Iterator[pa.RecordBatch]:
    import pyarrow as pa  # noqa: PLC0415

    with opened:
        for batch in _batches(reader, name, file):
            found = reader.take_rejects()
            for reject in found:
                if rejects is None:
                    other = find_other_format(reader.close(), found, concatenated=concatenated)
                    raise RejectedLineError(reject, other)
                rejects(reject)
            if batch is not None:
                filled, missing = set(batch.filled_columns), pa.nulls(batch.rows, pa.string())
                numbers = range(len(schema))
                arrays = [pa.array(batch.column(at), pa.string()) if at in filled else missing for at in numbers]
                yield pa.RecordBatch.from_arrays(arrays, schema=schema)


def _find_columns(
    name: str, file: BinaryIO, column_limit: int, max_line_bytes: int, *, concatenated: bool
) -> list[str]:
    reader = Reader(
        column_limit=column_limit, max_line_bytes=max_line_bytes, concatenated=concatenated, reject_sample_count=0
    )
    names: list[str] = []
    for batch in _batches(reader, name, file):
        names = names if batch is None else batch.names
    return [column for column in names if column != "_rescued"]


def _batches(reader: Reader, name: str, file: BinaryIO) -> Iterator[Batch | None]:
    """The batches of a file, and None where rejects may have come without a batch."""
    reader.open(name)
    chunks = _chunks(file)
    while not reader.done:
        if (chunk := next(chunks, None)) is not None:
            reader.feed(chunk)
        else:
            reader.end_of_input()
        while (batch := reader.read()) is not None:
            yield batch
        yield None
    error = reader.close().error
    if error is not None:
        raise UnreadableFileError(f"{name}: {error}: its rows are not all of the file")
    yield reader.flush()


def _chunks(file: BinaryIO) -> Iterator[bytes]:
    while (chunk := file.read(CHUNK_BYTES)) != b"":
        if chunk is None:
            raise BlockingIOError("the file object gives no bytes now, which is not its end: call os.set_blocking")
        yield chunk


@contextmanager
def _opened(source: str | PathLike[str] | BinaryIO, *, twice: bool) -> Iterator[BinaryIO]:
    if isinstance(source, str | PathLike):
        with Path(source).open("rb") as file:
            yield file
    elif twice and not source.seekable():
        with tempfile.TemporaryFile() as copy:
            copy.writelines(_chunks(source))
            copy.seek(0)
            yield copy
    else:
        yield source
