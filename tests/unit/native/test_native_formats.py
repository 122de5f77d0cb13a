"""Compressed files, JSON arrays and concatenated objects: read whole, wherever the file is cut into chunks."""

import bz2
import gzip
from collections.abc import Callable

import pyarrow as pa
import pytest
from ndjson_arrow import Reader, SplitCounts, can_split

from tests.unit.native.reader_driver import ReadResult, chunks_of, read_file, read_split

ROWS = b"".join(b'{"id":%d,"text":"line %d"}\n' % (number, number * 7919) for number in range(3000)) + b"broken\n\n"
Compress = Callable[[bytes], bytes]


def compress_zstd(data: bytes) -> bytes:
    return pa.compress(data, codec="zstd", asbytes=True)


CODECS: list[tuple[str, Compress]] = [("gzip", gzip.compress), ("bzip2", bz2.compress), ("zstd", compress_zstd)]


@pytest.mark.parametrize(("name", "compress"), CODECS)
def test_a_truncated_file_fails_as_a_whole_with_codec_and_offset(name: str, compress: Compress) -> None:
    compressed = compress(ROWS)
    for length in (4, 20, len(compressed) // 2, len(compressed) - 1):
        (counts,) = read_file(compressed[:length], cuts=[7, 100]).counts
        assert counts.error == f"truncated {name} at byte {length}"


@pytest.mark.parametrize("compress", [gzip.compress, bz2.compress])
def test_a_damaged_file_is_read_up_to_its_damage(compress: Compress) -> None:
    packed = bytearray(compress(b"".join(b'{"n":%d}\n' % (number * 7919) for number in range(3000))))
    damaged = len(packed) // 2
    packed[damaged : damaged + 50] = b"\xff" * 50
    for cuts in ([], [1000], [damaged]):
        text, _, cause = str(read_file(bytes(packed), cuts=cuts).counts[0].error).partition(": ")
        assert damaged <= int(text.rpartition(" ")[2]) <= len(packed)
        assert "bad state" not in cause


@pytest.mark.parametrize(
    ("header", "reason"),
    [
        # A window of 256 MiB, and the id of a dictionary (RFC 8878, 3.1.1.1)
        ([0, (28 - 10) << 3], "its window is larger than 128 MiB: compress it with zstd --long=27"),
        ([1, (20 - 10) << 3, 7], "it needs a dictionary: compress it without one"),
    ],
)
def test_a_reason_names_what_the_header_of_a_zstd_frame_requires(header: list[int], reason: str) -> None:
    frame = b"\x28\xb5\x2f\xfd" + bytes(header) + compress_zstd(ROWS)[6:]
    assert reason in str(read_file(frame).counts[0].error)


LARGE = ROWS * 250
"""Inflates to more than the 16 MiB after which a separate thread inflates a gzip file."""


@pytest.mark.parametrize("step", [1 << 19, 1 << 30])
def test_a_large_gzip_file_is_read_as_its_text_is(step: int) -> None:
    # Given members, a line that starts in one and ends in another, and padding
    middle = len(LARGE) // 2 + 5
    packed = gzip.compress(LARGE[:middle], 1) + gzip.compress(LARGE[middle:], 1) + bytes(1000)
    # Then
    expected, read = (counts_of(data, step) for data in (LARGE, packed))
    for name in ("error", "lines", "rows", "blank_lines", "rejects", "bytes"):
        assert getattr(read, name) == getattr(expected, name)


def counts_of(data: bytes, step: int) -> SplitCounts:
    """As in a task, batches are dropped on arrival."""
    reader = Reader(flush_bytes=8 << 20)
    reader.open("large")
    for chunk in chunks_of(data, range(0, len(data), step)):
        if not reader.done:
            reader.feed(chunk)
            while reader.read() is not None:
                pass
    if not reader.done:
        reader.end_of_input()
        while reader.read() is not None:
            pass
    return reader.close()


def read_repeated(member: bytes, members: int) -> ReadResult:
    """Reads a file of equal members without holding its inflated bytes."""
    reader, result = Reader(max_line_bytes=1 << 20), ReadResult()
    read_split(reader, result, [member] * members, "file")
    return result


@pytest.mark.parametrize(("name", "compress"), [codec for codec in CODECS if codec[0] != "gzip"])
def test_a_decompression_bomb_is_stopped_by_its_ratio(name: str, compress: Compress) -> None:
    # Given members of 16 MiB each with a ratio far above 2,000, more than 256 MiB in total
    (counts,) = read_repeated(compress(bytes(16 << 20)), 17).counts
    # Then
    assert str(counts.error).startswith("expands too far: ")
    assert name in str(counts.error)


@pytest.mark.parametrize(("name", "compress"), CODECS)
def test_up_to_256_mebibytes_the_ratio_is_not_limited(name: str, compress: Compress) -> None:
    # Given repetitive lines with a high ratio, as logs can have them
    text = (b" " * 1023 + b"\n") * (16 << 10)
    compressed = compress(text)
    assert len(text) > 200 * len(compressed)
    # When
    (counts,) = read_repeated(compressed, 16).counts
    # Then
    assert (counts.error, counts.blank_lines, counts.bytes) == (None, 16 * (16 << 10), 256 << 20)


def test_no_ratio_that_gzip_can_have_is_a_bomb() -> None:
    # Given rows with nearly all values equal, more than 256 MiB in total
    rows = b'{"id":1,"values":[%s]}\n' % b",".join([b"0.0"] * 4000) * 1000
    compressed = gzip.compress(rows)
    assert len(rows) > 200 * len(compressed)
    # When
    (counts,) = read_repeated(compressed, 18).counts
    # Then
    assert (counts.error, counts.rows) == (None, 18_000)


def test_a_compressed_file_is_stopped_by_its_inflated_size() -> None:
    (counts,) = read_file(gzip.compress(ROWS), max_inflated_bytes=50_000).counts
    assert str(counts.error).startswith("expands too far: gzip inflates to more than 50000 bytes")


@pytest.mark.parametrize(
    ("body", "options", "what"),
    [
        (b" \n[{}]", {}, "a JSON array opened in part: it"),
        (b"{}\n", {"concatenated": True}, "concatenated JSON opened in part: it"),
        (gzip.compress(ROWS), {}, "gzip file opened in part: a compressed file"),
    ],
)
def test_a_part_of_such_a_file_is_refused(body: bytes, options: dict[str, bool], what: str) -> None:
    reader, result = Reader(**options), ReadResult()  # type: ignore[arg-type]
    read_split(reader, result, chunks_of(body, []), "file", 0, 3)
    assert result.counts[0].error == f"{what} can only be read whole"


@pytest.mark.parametrize(
    ("head", "divisible"),
    [
        (b"{}", True),
        (b"\xef\xbb\xbf \n{", True),
        (b"x[", True),
        (b"[", False),
        (b"\xef\xbb\xbf\n [", False),
        (b"    ", False),
        (b"", False),
        (gzip.compress(b"{}")[:4], False),
    ],
)
def test_a_file_that_begins_like_an_array_is_not_divided(head: bytes, *, divisible: bool) -> None:
    assert can_split(head) is divisible
