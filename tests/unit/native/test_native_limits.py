"""Memory is bounded and counts are exact for any input."""

import subprocess
import sys

import pyarrow as pa
import pytest
from ndjson_arrow import Reader

from sizing.peak_memory import peak_bytes
from tests.oracle import ndjson_oracle as oracle
from tests.unit.native.reader_driver import ReadResult, assert_same, read_available, read_file, read_split

MEBIBYTE = 1 << 20


def test_an_endless_line_is_counted_exactly_and_not_kept() -> None:
    # Given a line of 2 GiB between two rows
    reader, result, chunk = Reader(), ReadResult(), b"x" * (4 * MEBIBYTE)
    before = peak_bytes()
    # When
    read_split(reader, result, [b'{"a":1}\n', *[chunk] * 512, b'\n{"a":2}\n'], "file")
    # Then
    (counts,) = result.counts
    assert (counts.rows, counts.rejects, counts.bytes) == (2, {"line too long": 1}, 8 + 2048 * MEBIBYTE + 1 + 8)
    (reject,) = result.rejects
    assert (reject.offset, reject.length, reject.line) == (8, 2048 * MEBIBYTE, None)
    assert peak_bytes() - before < 100 * MEBIBYTE


def test_distinct_keys_beyond_the_limit_cost_no_memory() -> None:
    # Given 400,000 distinct keys, 20 per row
    reader, result = Reader(column_limit=50, flush_bytes=2 * MEBIBYTE), ReadResult()
    lines = (
        "{" + ",".join(f'"key number {row * 20 + n:09d} {"x" * 100}":{n}' for n in range(20)) + "}\n"
        for row in range(20_000)
    )
    before = peak_bytes()
    # When
    reader.open("file")
    column_count = 0
    for line in lines:
        reader.feed(line.encode())
        batch = reader.read()
        if batch is not None:
            column_count = len(batch.names)
            result.batches += 1
    # Then
    assert column_count == 51
    assert result.batches > 10
    assert peak_bytes() - before < 30 * MEBIBYTE


def test_a_file_of_rejects_only_keeps_a_bounded_sample() -> None:
    # Given
    data = b"".join(b"reject %06d\n" % number for number in range(20_000))
    # When
    read = read_file(data, reject_sample_count=10, reject_sample_bytes=65)
    # Then five lines fit into the bytes, five more rejects are kept without their lines, all others are counted
    assert [reject.line for reject in read.rejects] == [b"reject %06d" % n for n in range(5)] + [None] * 5
    assert [reject.offset for reject in read.rejects] == [14 * n for n in range(10)]
    assert read.counts[0].rejects == {"not JSON": 20_000}
    first = read.counts[0].first_reject
    assert first is not None
    assert (first.offset, first.length, first.reason, first.line) == (0, 13, "not JSON", b"reject 000000")


def test_each_split_has_its_own_sample() -> None:
    read = read_file(b"a\nb\nc\nd\n", splits=[4], reject_sample_count=1)
    assert [reject.line for reject in read.rejects] == [b"a", b"c"]
    assert [counts.rejects for counts in read.counts] == [{"not JSON": 2}, {"not JSON": 2}]


def test_a_batch_is_returned_when_the_columns_are_full() -> None:
    # Given rows of about 100 bytes
    data = b"".join(b'{"n":%d,"text":"%s"}\n' % (number, b"x" * 80) for number in range(10_000))
    reader, result = Reader(flush_bytes=100_000, column_limit=2), ReadResult()
    # When
    reader.open("file")
    reader.feed(data)
    sizes = []
    while (batch := reader.read()) is not None:
        sizes.append(sum(pa.array(batch.column(index), pa.string()).nbytes for index in range(3)))
    # Then
    assert len(sizes) == 10
    assert all(95_000 <= size <= 100_000 for size in sizes)
    reader.end_of_input()
    read_available(reader, result)
    assert reader.close().rows == 10_000


def test_the_bitmaps_of_columns_that_can_still_appear_count_as_memory() -> None:
    # Given rows without common columns: their values are short, but each column has a bit for each row before its first
    data = b"".join(b'{"k%d":1}\n' % (number % 500) for number in range(20_000))
    # When
    read = read_file(data, flush_bytes=MEBIBYTE // 8, column_limit=500)
    # Then
    assert read.batches > 10
    assert_same(read, oracle.read(data))


@pytest.mark.parametrize("option", ["flush_bytes", "max_line_bytes"])
@pytest.mark.parametrize("value", [0, 1 << 31])
def test_limits_beyond_arrows_offsets_are_refused(option: str, value: int) -> None:
    with pytest.raises(ValueError, match=option):
        Reader(**{option: value})  # type: ignore[arg-type]


BYTES = 16_000_000


PROBE = f"""
import resource, sys
from pathlib import Path
from ndjson_arrow import Reader

begin, repeated, end = (text.encode() for text in sys.argv[1:])
line = begin + repeated * ({BYTES} // len(repeated)) + end
reader = Reader()
reader.open("file")
now = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (now + 6 * {BYTES}, now + 6 * {BYTES}))
reader.feed(line)
reader.end_of_input()
reader.read()
counts = reader.close()
print(counts.rejects)
"""


@pytest.mark.parametrize(
    ("begin", "repeated", "end", "reason"),
    [
        ("{", '"":0,', '"":0}', "duplicate key"),
        ('{"a":"\\ud800",', '"":0,', '"b":0}', "lone surrogate"),
        ("{", '"":0,', "}", "not JSON"),
        ("{", '"":0,', '"":0} x', "trailing characters"),
        ("[[", "0,", "0]]", "not an object"),
    ],
)
def test_a_rejected_line_of_many_members_takes_little_more_than_itself(
    begin: str, repeated: str, end: str, reason: str
) -> None:
    probe = [sys.executable, "-c", PROBE, begin, repeated, end]
    assert subprocess.run(probe, capture_output=True, text=True, check=True).stdout.strip() == str({reason: 1})
