"""Hostile files: small to send, and formerly expensive to convert. The same count gives the same bytes."""

import bz2
import gzip
import json
import random
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import IO

import pyarrow as pa

MIB = 1 << 20
ROWS = 300_000
"""Rows of the small files: enough for many batches and, in their columns, for many megabytes of bitmaps."""
RATIO_ROWS = 180_000_000
"""Empty objects of 515 MiB: their ratio of 1,023, nearly the most of gzip, is accepted above 256 MiB too."""
KEYS = tuple(f"key{number}" for number in range(1000))
EMPTY_OBJECTS = b"{}\n" * 100_000
HOSTILE_KEY = "orders/\x1b[2J\n" + "\x01" * 1000
"""An S3 key of 1,013 bytes; JSON writes six characters for each control character."""


@dataclass(frozen=True)
class HostileFile:
    """One file, how it is converted, and its maximum cost."""

    name: str
    write: Callable[[IO[bytes], int], None]
    """Writes the file for a count, which is its size in rows, members or bytes."""
    small: int
    """Count for the tests of each run."""
    full: int
    """Count for ``make hostile``."""
    peak_bytes: int = 300 * MIB
    """Maximum resident memory of the process that converts it."""
    by: str = "task"
    """``task`` converts it; ``sample`` takes the driver's sample of it."""
    compressed: bool = False
    known_columns: int = 0
    splits: int = 1
    key: str = "orders/file.ndjson"
    parquet_per_inflated: float = 10
    """Maximum bytes of Parquet for each byte of its lines."""
    quarantine_per_stored: float = 20
    """Maximum bytes of quarantine records for each byte of the file, after the first 128 KiB."""
    fetched_per_stored: float = 2
    """Maximum bytes fetched for each byte of the file, after the first MiB."""
    refused: str | None = None
    """A part of the reason with which the file is refused; None: it becomes rows and rejected lines."""
    slow: bool = False
    """The deadline may refuse it; a fast machine converts it in time."""
    verified: bool = False
    """Whether ``verify`` reads it too: it has few lines, because that parser is written in Python."""


def _empty_objects(stream: IO[bytes] | gzip.GzipFile, count: int) -> None:
    for _ in range(count // 100_000):
        stream.write(EMPTY_OBJECTS)
    stream.write(b"{}\n" * (count % 100_000))


def _wide_row(value: str) -> bytes:
    return json.dumps(dict.fromkeys(KEYS, value)).encode() + b"\n"


def _wide_row_first(stream: IO[bytes], count: int) -> None:
    with gzip.GzipFile(fileobj=stream, mode="wb", mtime=0) as packed:
        packed.write(_wide_row("x"))
        _empty_objects(packed, count)


def _wide_row_last(stream: IO[bytes], count: int) -> None:
    with gzip.GzipFile(fileobj=stream, mode="wb", mtime=0) as packed:
        _empty_objects(packed, count)
        packed.write(_wide_row("x"))


def _wide_rows_between(stream: IO[bytes], count: int) -> None:
    with gzip.GzipFile(fileobj=stream, mode="wb", mtime=0) as packed:
        for _ in range(count // 100_000):
            packed.write(_wide_row("x"))
            packed.write(EMPTY_OBJECTS)


def _long_values(stream: IO[bytes], count: int) -> None:
    with gzip.GzipFile(fileobj=stream, mode="wb", compresslevel=1, mtime=0) as packed:
        for row in range(count):
            packed.write(_wide_row(f"{row:06d}" + "v" * 4090))


def _one_line(stream: IO[bytes], count: int) -> None:
    stream.write(b'{"a":"')
    for _ in range(count // MIB):
        stream.write(b"x" * MIB)


def _members(member: bytes) -> Callable[[IO[bytes], int], None]:
    def write(stream: IO[bytes], count: int) -> None:
        many = member * (MIB // len(member))
        for _ in range(count // MIB):
            stream.write(many)

    return write


def _bad_lines(stream: IO[bytes], count: int) -> None:
    chance = random.Random(1)
    for _ in range(count):
        stream.write(chance.choice([b"x\n", b"[1]\n", b"\x01\x02\x03\n", b'{"a":1,"a":2}\n']))


def _slow_gzip(stream: IO[bytes], count: int) -> None:
    chance = random.Random(2)
    with gzip.GzipFile(fileobj=stream, mode="wb", compresslevel=1, mtime=0) as packed:
        packed.write(_wide_row("x"))
        for _ in range(count // 10_000):
            packed.write(EMPTY_OBJECTS[:30_000])
            packed.write(b'{"key0":"%s"}\n' % chance.randbytes(24).hex().encode())


def _one_row(begin: bytes, member: Callable[[int], bytes], end: bytes) -> Callable[[IO[bytes], int], None]:
    """A row of ``count`` members, or characters, in gzip."""

    def write(stream: IO[bytes], count: int) -> None:
        with gzip.GzipFile(fileobj=stream, mode="wb", mtime=0) as packed:
            packed.write(begin)
            for start in range(0, count, 10_000):
                packed.write(b"".join(member(number) for number in range(start, min(start + 10_000, count))))
            packed.write(end)

    return write


def _skippable_first(stream: IO[bytes], count: int) -> None:
    stream.write(b"\x50\x2a\x4d\x18" + (5).to_bytes(4, "little") + b"12345")
    stream.write(pa.compress(b'{"a":1}\n\n[1]\n' * (count // 3), codec="zstd", asbytes=True))


def _bzip2_name(stream: IO[bytes], count: int) -> None:
    stream.write(b"BZhello\n" + b'{"a":1}\n' * count)


def _short_streams(stream: IO[bytes], count: int) -> None:
    chance = random.Random(3)
    for _ in range(count // 1024):
        stream.write(bz2.compress(b'{"a":"%s"}\n' % chance.randbytes(507).hex().encode()))


EMPTY_MEMBERS = {
    "empty gzip members": gzip.compress(b"", mtime=0),
    "empty bzip2 streams": bz2.compress(b""),
    "empty zstd frames": pa.compress(b"", codec="zstd", asbytes=True),
    "skippable zstd frames": b"\x50\x2a\x4d\x18" + bytes(4),
}
ONE_ROW = (
    ("a key 3.3 million times", b"{", lambda _: b'"":0,', b'"":0}\n', 200_000, 3_300_000),
    ("1.4 million keys in a row", b"{", lambda number: b'"%d":0,' % number, b'"":0}\n', 100_000, 1_400_000),
    ("a string of 16 MB, and 4,301 digits", b'{"n":%s,"a":"' % (b"9" * 4301), lambda _: b"x", b'"}\n', MIB, 16_000_000),
)
"""Name, begin, member by its number, end, and both counts."""

PACKED = partial(HostileFile, compressed=True)
WIDE = partial(PACKED, small=ROWS, full=83_000_000, slow=True)
CORPUS = (
    WIDE("a row of 1,000 keys, then empty objects", _wide_row_first, full=RATIO_ROWS, parquet_per_inflated=0.5),
    WIDE("empty objects, then a row of 1,000 keys", _wide_row_last, full=RATIO_ROWS, parquet_per_inflated=0.5),
    WIDE("a row of 1,000 keys in 100,000", _wide_rows_between),
    PACKED("slow gzip, ratio 168", _slow_gzip, ROWS, 300_000_000, slow=True),
    PACKED("1,000 values of 4,096 bytes in each row", _long_values, 40, 1500),
    HostileFile("empty objects, 11,000 known columns", _empty_objects, 200_000, 930_000, known_columns=11_000),
    PACKED(
        "driver's sample of a row after empty objects", _wide_row_last, 2_000_000, 17_000_000, 200 * MIB, by="sample"
    ),
    HostileFile("no newline, 4 splits", _one_line, 8 * MIB, 256 * MIB, splits=4),
    HostileFile("no newline, 64 splits", _one_line, 8 * MIB, 256 * MIB, splits=64),
    *(
        PACKED(name, _members(member), 8 * MIB, 3072 * MIB, refused="holds too little")
        for name, member in EMPTY_MEMBERS.items()
    ),
    *(
        PACKED(name, _one_row(begin, member, end), small, full, verified=True)
        for name, begin, member, end, small, full in ONE_ROW
    ),
    PACKED("zstd, a skippable frame first", _skippable_first, 3000, 3_000_000, verified=True),
    HostileFile("text that begins with BZh", _bzip2_name, 3000, 1_000_000, verified=True),
    PACKED("bzip2 streams of 1 KiB", _short_streams, 256 * 1024, 12 * MIB, verified=True, slow=True),
    HostileFile("short bad lines, key of control characters", _bad_lines, 1000, 1000, key=HOSTILE_KEY),
    HostileFile("many bad lines, key of control characters", _bad_lines, 100_000, 5_000_000, key=HOSTILE_KEY),
)
