"""Drives the native Reader in tests as a task does, and compares its result with the oracle's."""

import itertools
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import pyarrow as pa
from ndjson_arrow import Batch, Reader, Reject, SplitCounts, can_split

from tests.oracle.ndjson_oracle import OracleResult


@dataclass(slots=True)
class ReadResult:
    """Results of a Reader for all its splits."""

    counts: list[SplitCounts] = field(default_factory=list)
    rejects: list[Reject] = field(default_factory=list)
    rows: list[dict[str, str]] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    keys: list[str] = field(default_factory=list)
    batches: int = 0

    def add(self, batch: Batch | None) -> None:
        if batch is None:
            return
        assert batch.names[: len(self.names)] == self.names
        self.batches += 1
        self.names, self.keys = batch.names, batch.keys
        self.rows += rows_of(batch)


def rows_of(batch: Batch) -> list[dict[str, str]]:
    """Column -> text for each row, without NULLs. Arrow validates the buffers."""
    rows: list[dict[str, str]] = [{} for _ in range(batch.rows)]
    for index, name in enumerate(batch.names):
        array = pa.array(batch.column(index), pa.string())
        assert array.type == pa.string()
        assert len(array) == batch.rows
        array.validate(full=True)
        for row, value in zip(rows, array.to_pylist(), strict=True):
            if value is not None:
                row[name] = value
    return rows


def chunks_of(data: bytes, cuts: Sequence[int]) -> list[bytes]:
    """The data, cut at these positions, in any order. Positions outside the data are ignored."""
    positions = [0, *sorted({cut for cut in cuts if 0 < cut < len(data)}), len(data)]
    return [data[start:stop] for start, stop in itertools.pairwise(positions)]


def read_split(
    reader: Reader, result: ReadResult, chunks: Iterable[bytes], source: str, start: int = 0, end: int | None = None
) -> None:
    """Reads one split and adds all returned data to ``result``, except rows that no batch has returned."""
    reader.open(source, start=start, end=end)
    for chunk in chunks:
        if reader.done:
            break
        reader.feed(chunk)
        read_available(reader, result)
    if not reader.done:
        reader.end_of_input()
        read_available(reader, result)
    result.counts.append(reader.close())
    result.rejects += reader.take_rejects()


def read_available(reader: Reader, result: ReadResult) -> None:
    """Reads the bytes that were fed."""
    while (batch := reader.read()) is not None:
        result.add(batch)
    assert reader.done or reader.needs_input


def batches_of(chunks: Iterable[bytes], **options: object) -> Iterator[Batch]:
    """The batches of a file that is fed in these chunks."""
    reader = Reader(**options)  # type: ignore[arg-type]
    reader.open("rows")
    for chunk in chunks:
        reader.feed(chunk)
        yield from iter(reader.read, None)
    reader.end_of_input()
    yield from iter(reader.read, None)
    reader.close()
    if (last := reader.flush()) is not None:
        yield last


def batch_of(reader: Reader, data: bytes) -> Batch:
    """All rows of the data in one batch; the data must be too small to fill the columns."""
    reader.open("rows")
    reader.feed(data)
    reader.end_of_input()
    assert reader.read() is None
    reader.close()
    batch = reader.flush()
    assert batch is not None
    return batch


def read_file(data: bytes, *, cuts: Sequence[int] = (), splits: Sequence[int] = (), **options: object) -> ReadResult:
    """Reads the whole file with one Reader: fed in chunks that end at ``cuts``, in splits that end at ``splits``.

    A file that can only be read whole is one split.
    """
    result = ReadResult()
    reader = Reader(**options)  # type: ignore[arg-type]
    can_be_split = can_split(data) and not options.get("concatenated")
    borders = [0, *sorted({split for split in splits if split > 0 and can_be_split})]
    for start, end in zip(borders, [*borders[1:], None], strict=True):
        first = max(start - 1, 0)
        read_split(reader, result, chunks_of(data[first:], [cut - first for cut in cuts]), "file", start, end)
    result.add(reader.flush())
    return result


def assert_same(read: ReadResult, expected: OracleResult, *, provenance: bool = False) -> None:
    """Asserts that rows, rejects with their lines, counts and columns equal the oracle's."""
    rows = [row | ({"_source": "file", "_offset": str(offset)} if provenance else {}) for offset, row in expected.rows]
    assert read.rows == rows
    assert [(reject.offset, reject.length, reject.reason, reject.line) for reject in read.rejects] == [
        (offset, length, reason, None if reason == "line too long" or length > 65536 else line)
        for offset, length, reason, line in expected.rejects
    ]
    counted = [counts for counts in read.counts if counts.error is None]
    assert len(counted) == len(read.counts)
    assert sum(counts.lines for counts in counted) == expected.lines
    assert sum(counts.rows for counts in counted) == len(expected.rows)
    assert sum(counts.blank_lines for counts in counted) == expected.blank_lines
    assert sum(counts.bytes for counts in counted) == expected.size
    reasons: dict[str, int] = {}
    for counts in counted:
        assert counts.lines == counts.rows + counts.blank_lines + sum(counts.rejects.values())
        for reason, count in counts.rejects.items():
            reasons[reason] = reasons.get(reason, 0) + count
    assert reasons == Counter(reason for _, _, reason, _ in expected.rejects)
    if read.batches:
        system_columns = {"_rescued", "_source", "_arrived_at", "_offset"}
        assert [name for name in read.names if name not in system_columns] == list(expected.columns)
        keys = dict(zip(read.names, read.keys, strict=True))
        assert all(keys[name] == key for name, key in expected.columns.items() if key is not None)
