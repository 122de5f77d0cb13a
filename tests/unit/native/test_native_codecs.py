"""gzip, bzip2 and zstd by their first bytes, whole files only, and what is said of broken ones."""

import bz2
import gzip
from collections.abc import Callable

import pyarrow as pa
import pytest
from ndjson_arrow import Reader, detect_codec

from tests.oracle import ndjson_oracle as oracle
from tests.unit.native.reader_driver import Read, assert_same, read_file, read_split

ROWS = b"".join(b'{"id":%d,"text":"line %d"}\n' % (number, number * 7919) for number in range(3000)) + b"broken\n\n"
Pack = Callable[[bytes], bytes]


def zstd(data: bytes) -> bytes:
    return pa.compress(data, codec="zstd", asbytes=True)


CODECS: list[tuple[str, Pack]] = [("gzip", gzip.compress), ("bzip2", bz2.compress), ("zstd", zstd)]


@pytest.mark.parametrize(("name", "pack"), CODECS)
@pytest.mark.parametrize("step", [1, 1000, 1 << 20])
def test_every_member_is_read_however_it_is_fed(name: str, pack: Pack, step: int) -> None:
    # Given a line that goes from one member into the next
    packed = pack(ROWS[:5000]) + pack(b"") + pack(ROWS[5000:])
    # When
    read = read_file(packed, cuts=range(0, len(packed), step))
    # Then
    assert_same(read, oracle.read(ROWS))
    assert [counts.codec for counts in read.counts] == [name]
    assert detect_codec(packed[:4]) == name


@pytest.mark.parametrize(("name", "pack"), CODECS)
def test_a_truncated_file_fails_as_a_whole_with_codec_and_offset(name: str, pack: Pack) -> None:
    packed = pack(ROWS)
    for length in (4, 20, len(packed) // 2, len(packed) - 1):
        (counts,) = read_file(packed[:length], cuts=[7, 100]).counts
        assert counts.error == f"truncated {name} at byte {length}"


@pytest.mark.parametrize(("name", "pack"), CODECS)
def test_a_corrupt_file_fails_as_a_whole(name: str, pack: Pack) -> None:
    packed = bytearray(pack(ROWS))
    packed[len(packed) // 2] ^= 0x55
    packed[-6] ^= 0x55
    (counts,) = read_file(bytes(packed)).counts
    assert counts.error is not None
    assert counts.error.startswith(f"corrupt {name} at byte ")


@pytest.mark.parametrize(("name", "pack"), CODECS)
def test_garbage_behind_the_last_member_is_corruption(name: str, pack: Pack) -> None:
    (counts,) = read_file(pack(ROWS) + b"garbage").counts
    assert counts.error is not None
    assert counts.error.startswith(f"corrupt {name} at byte ")


def test_gzip_may_be_padded_with_zeros() -> None:
    assert_same(read_file(gzip.compress(ROWS) + bytes(2000), cuts=[500]), oracle.read(ROWS))


def test_a_skippable_frame_may_come_before_zstd() -> None:
    assert_same(read_file(b"\x50\x2a\x4d\x18\x03\x00\x00\x00abc" + zstd(ROWS)), oracle.read(ROWS))


def test_many_small_compressed_files_share_an_output() -> None:
    # Given
    reader, result = Reader(provenance=True), Read()
    packs = [*(pack for _, pack in CODECS), bytes]
    # When
    for number in range(40):
        read_split(reader, result, [packs[number % 4](b'{"n":%d}\n' % number)], f"file {number}")
    result.add(reader.flush())
    # Then
    assert result.batches == 1
    assert [(row["n"], row["_source"]) for row in result.rows] == [(str(n), f"file {n}") for n in range(40)]


def test_a_broken_file_does_not_harm_the_next() -> None:
    # Given a reader that met a truncated file
    reader, result = Reader(), Read()
    read_split(reader, result, [gzip.compress(ROWS)[:50]], "broken")
    # When
    read_split(reader, result, [b'{"after":1}\n'], "good")
    # Then
    assert [counts.error is None for counts in result.counts] == [False, True]
    assert result.counts[1].rows == 1


def test_a_compressed_file_is_not_opened_as_a_part() -> None:
    reader, result = Reader(), Read()
    read_split(reader, result, [gzip.compress(ROWS)], "part", 0, 100)
    assert result.counts[0].error == "gzip file opened in part: a compressed file can only be read whole"


def read_repeated(member: bytes, members: int) -> Read:
    """A file of equal members, none of whose inflated bytes are held."""
    reader, result = Reader(max_line_bytes=1 << 20), Read()
    read_split(reader, result, [member] * members, "file")
    return result


@pytest.mark.parametrize(("name", "pack"), CODECS)
def test_a_bomb_is_stopped_by_its_ratio(name: str, pack: Pack) -> None:
    # Given members of 16 MiB each, far above a ratio of 200, more than 256 MiB together
    (counts,) = read_repeated(pack(bytes(16 << 20)), 17).counts
    # Then
    assert counts.error is not None
    assert counts.error.startswith("expands too far: ")
    assert name in counts.error


@pytest.mark.parametrize(("name", "pack"), CODECS)
def test_up_to_256_mebibytes_a_file_may_expand_as_far_as_it_likes(name: str, pack: Pack) -> None:
    # Given repetitive lines, as logs have them, above a ratio of 200
    text = (b" " * 1023 + b"\n") * (16 << 10)
    packed = pack(text)
    assert len(text) > 200 * len(packed)
    # When
    (counts,) = read_repeated(packed, 16).counts
    # Then
    assert (counts.error, counts.blank_lines, counts.bytes) == (None, 16 * (16 << 10), 256 << 20)


def test_a_compressed_file_is_stopped_by_its_size() -> None:
    (counts,) = read_file(gzip.compress(ROWS), max_inflated_bytes=50_000).counts
    assert counts.error is not None
    assert counts.error.startswith("expands too far: gzip inflates to more than 50000 bytes")
