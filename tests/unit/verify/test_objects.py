"""Objects as lines: every compression, every range size, lines that are too long to be kept.

The readers of the conversion and of the verification read the same lines in every file, or both reject it.
"""

import bz2
import errno
import gzip
import io
import random
import struct
import zlib
from collections import Counter
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pyarrow as pa
import pytest
from boto3.exceptions import RetriesExceededError
from botocore.exceptions import ClientError, IncompleteReadError, ReadTimeoutError

from lake.commit import PendingObject, SourceCount
from lake.manifest import ObjectVersion
from tests.unit.native.reader_driver import read_file
from verify import objects
from verify.elements import lines_of
from verify.manifest_check import ExpectedFile, QuarantinedFile, digest_input, digest_lake
from verify.objects import GoneError, open_text
from verify.rows import InputRules, read_lines

BODY = b'{"a":1}\n\n' + b"x" * 100 + b"\n" + b"y" * 50


class OneObject:
    """An S3 with one object."""

    def __init__(self, body: bytes, error: str | None = None) -> None:
        self.body, self.error = body, error

    def get_object(self, **request: Any) -> dict[str, Any]:
        if self.error:
            raise ClientError({"Error": {"Code": self.error, "Message": ""}}, "GetObject")
        start, end = request["Range"].removeprefix("bytes=").split("-")
        return {"Body": io.BytesIO(self.body[int(start) : int(end) + 1])}


def read(s3: Any, size: int, version: str | None = "v1", limit: int = 1000) -> list[tuple[int, int, int, bytes | None]]:
    file = ObjectVersion("input", "a.json", "etag", size, "", version)
    with open_text(s3, file) as stream:
        return [(line.number, line.offset, line.length, line.body) for line in lines_of(stream, limit)]


def zstd(body: bytes) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, "zstd") as stream:
        stream.write(body)
    return sink.getvalue().to_pybytes()


@pytest.mark.parametrize("compress", [bytes, gzip.compress, bz2.compress, zstd])
def test_lines_have_their_place_whatever_the_compression(compress: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(objects, "RANGE_BYTES", 7)
    body = compress(BODY)
    assert read(OneObject(body), len(body)) == [
        (1, 0, 7, b'{"a":1}'),
        (2, 8, 0, b""),
        (3, 9, 100, b"x" * 100),
        (4, 110, 50, b"y" * 50),
    ]


@pytest.mark.parametrize("lost", [2, 3])
def test_a_range_whose_connection_is_lost_is_read_again(lost: int) -> None:
    s3, broken = OneObject(BODY), Mock(read=Mock(side_effect=ReadTimeoutError(endpoint_url="https://s3")))
    answers = [{"Body": broken}] * lost
    flaky: Any = Mock(get_object=lambda **request: answers.pop() if answers else s3.get_object(**request))
    if lost == 2:
        assert len(read(flaky, len(BODY))) == 4
    else:
        with pytest.raises(ReadTimeoutError):
            read(flaky, len(BODY))


@pytest.mark.parametrize("code", ["NoSuchKey", "NoSuchVersion", "PreconditionFailed"])
def test_an_object_that_is_gone_is_not_an_error_of_the_request(code: str) -> None:
    with pytest.raises(GoneError, match=code):
        read(OneObject(BODY, code), len(BODY))


def test_a_denied_object_is_not_gone() -> None:
    with pytest.raises(ClientError, match="AccessDenied"):
        read(OneObject(BODY, "AccessDenied"), len(BODY))


STALLED = ReadTimeoutError(endpoint_url="https://s3")
FULL_DISK = OSError(errno.ENOSPC, "no space left on device")
ARCHIVED = ClientError({"Error": {"Code": "InvalidObjectState", "Message": ""}}, "GetObject")
DISABLED_KEY = ClientError({"Error": {"Code": "KMS.DisabledException", "Message": ""}}, "GetObject")


@pytest.mark.parametrize(
    ("raised", "error"),
    [
        (STALLED, STALLED),
        (FULL_DISK, FULL_DISK),
        (DISABLED_KEY, DISABLED_KEY),
        (ARCHIVED, ARCHIVED),
        (RetriesExceededError(STALLED), STALLED),  # type: ignore[arg-type]
    ],
)
def test_a_published_object_that_cannot_be_read_now_does_not_differ(raised: Exception, error: Exception) -> None:
    s3: Any = Mock(**{"download_file.side_effect": raised})
    with pytest.raises(type(error)) as found:
        digest_lake(s3, [PendingObject("lake", "a.parquet", "", "", "", 1, 1)])
    assert found.value is error


def test_a_proxys_page_in_place_of_a_published_object_is_no_difference() -> None:
    s3: Any = Mock(**{"head_object.return_value": {"ContentLength": 9}})
    s3.download_file = lambda _bucket, _key, path: Path(path).write_bytes(b"<html>")
    with pytest.raises(IncompleteReadError):
        digest_lake(s3, [PendingObject("lake", "a.parquet", "", "", "sha", 9, 1)])


def test_an_input_file_that_cannot_be_read_now_does_not_differ() -> None:
    s3: Any = Mock(**{"get_object.side_effect": STALLED})
    file = ObjectVersion("input", "a.json", "etag", 9, "2026-03-04T12:00:00.000+00:00", "v1")
    expected = ExpectedFile(file, QuarantinedFile(), SourceCount(file.uri, "v1", 9, 1, 1, 0, {}, None, None))
    with pytest.raises(ReadTimeoutError):
        digest_input(InputRules(1000, concatenated=False, provenance=False), s3, [expected])


ROWS = b'{"a":1}\n\n[1]\n{"a":"x"}\r\n'
MORE = b'{"b":2}'
SKIPPABLE = b"\x50\x2a\x4d\x18" + struct.pack("<I", 5) + b"12345"
PZSTD = b"\x5f\x2a\x4d\x18" + struct.pack("<I", 4) + b"\0\0\0\0"


def gzip_with_header(flags: int, fields: bytes) -> bytes:
    plain = gzip.compress(ROWS)
    return plain[:3] + bytes([flags]) + plain[4:10] + fields + plain[10:]


LINE_BYTES = 10_000
FITS = b"x" * (LINE_BYTES - len('{"a":""}'))
NOISE = random.Random(25).randbytes(300)
HEADER_CHECK = struct.pack("<H", zlib.crc32(gzip_with_header(2, b"")[:10]) & 0xFFFF)
CODECS = {"gzip": gzip.compress, "bzip2": bz2.compress, "zstd": zstd}
COMPRESSED = {
    f"{codec} {kind}": make(compress)
    for codec, compress in CODECS.items()
    for kind, make in {
        "one member": lambda pack: pack(ROWS),
        "empty member": lambda pack: pack(b""),
        "empty member between": lambda pack: pack(ROWS) + pack(b"") + pack(MORE),
        "line across members": lambda pack: pack(ROWS + b'{"c"') + pack(b":3}\n"),
        "long line across members": lambda pack: pack(b'{"a":"' + b"x" * 4000) + pack(b'"}\n{"a":1}'),
        "byte order mark": lambda pack: pack(b"\xef\xbb\xbf" + ROWS),
        "truncated by one byte": lambda pack: pack(ROWS)[:-1],
        "truncated in the second member": lambda pack: pack(ROWS) + pack(MORE)[:-4],
        "magic number only": lambda pack: pack(b"")[:4],
        "first byte of a second member": lambda pack: pack(ROWS) + pack(b"")[:1],
        "text after it": lambda pack: pack(ROWS) + b"tail",
        "newline after it": lambda pack: pack(ROWS) + b"\n",
        "zeros after it": lambda pack: pack(ROWS) + bytes(512),
        "zeros between": lambda pack: pack(ROWS) + bytes(512) + pack(MORE),
        "skippable frame after it": lambda pack: pack(ROWS) + SKIPPABLE,
        "noise after its header": lambda pack: pack(NOISE)[:12] + NOISE,
        "flipped bit": lambda pack: bytes([*pack(NOISE)[:60], pack(NOISE)[60] ^ 4, *pack(NOISE)[61:]]),
        "wrong check at the end": lambda pack: pack(ROWS)[:-5] + bytes([pack(ROWS)[-5] ^ 1]) + pack(ROWS)[-4:],
        "one byte of 100,000": lambda pack: pack(b"x" * 100_000 + b"\n" + MORE),
    }.items()
}
FILES = COMPRESSED | {
    "empty": b"",
    "newline": b"\n",
    "plain": ROWS + MORE,
    "three bytes of zstd": b"\x28\xb5\x2f",
    "one byte of gzip": b"\x1f",
    "two bytes of gzip": b"\x1f\x8b",
    "gzip of another method": b"\x1f\x8b\x07" + gzip.compress(ROWS)[3:],
    "gzip with a name": gzip_with_header(8, b"name\0"),
    "gzip with an extra field": gzip_with_header(4, b"\x02\0ab"),
    "gzip with a check of its header": gzip_with_header(2, HEADER_CHECK),
    "gzip with a wrong check of its header": gzip_with_header(2, b"\0\0"),
    "gzip with a reserved flag": gzip_with_header(0x80, b""),
    "gzip marked as text": gzip_with_header(1, b""),
    "BZh without a level": b"BZh\n" + ROWS,
    "BZh and level 0": b"BZh0" + bz2.compress(ROWS)[4:],
    "BZh9 and text": b"BZh9 is text\n" + ROWS,
    "bzip2 of level 1": bz2.compress(ROWS, 1),
    "bzip2 after a wrong level": bz2.compress(ROWS) + b"BZh0" + bz2.compress(ROWS)[4:],
    "skippable frame first": SKIPPABLE + zstd(ROWS),
    "frames of pzstd": PZSTD + zstd(ROWS) + PZSTD + zstd(MORE),
    "skippable frame between": zstd(ROWS) + SKIPPABLE + zstd(MORE),
    "only a skippable frame": SKIPPABLE,
    "empty skippable frame": b"\x50\x2a\x4d\x18\0\0\0\0" + zstd(ROWS),
    "skippable frame that is cut": SKIPPABLE[:-2],
    "header of a skippable frame that is cut": SKIPPABLE[:6],
    "skippable frame and text": SKIPPABLE + ROWS,
    "skippable frame and gzip": SKIPPABLE + gzip.compress(ROWS),
    "magic number below the skippable ones": b"\x4f\x2a\x4d\x18\n" + ROWS,
    "zstd without the size of its content": zstd(ROWS * 50_000),
    "zstd with a window of 2 GiB": b"\x28\xb5\x2f\xfd\x00\xa8\x01\0\0",
    "gzip in gzip": gzip.compress(gzip.compress(ROWS)),
    "gzip and bzip2": gzip.compress(ROWS) + bz2.compress(ROWS),
    "lz4": b"\x04\x22\x4d\x18" + NOISE,
    "array": b'\n [{"a":1}, {"a":"]"},\n1, "x" ]\n',
    "array without an end": b'[{"a":1}, {"a":2}',
    "broken array, then lines": b'[,{"a":1},,{"a":[1},{"b":"x},\n{"a":2},]\n["x"]\n{"a":3}\n[3]\n',
    "array with elements at the limit": b'[{"a":"%s"}\n ,{"a":"%s"}\n, {"a":1}]' % (FITS, FITS + b"x"),
    "array after a byte order mark": b"\xef\xbb\xbf[{}]",
    "array after a blank start that is too long": b" " * 20_000 + b"[{}]",
    "array in zstd": zstd(b"[{}," * 50_000 + b"{}]"),
    "objects in any form": b'{\n "a":1\n}{"a":"}{"} \x1e{"a":2}[\x1e{}]\n\x1e \x1e{\n "a":\n3}\n',
    "only a byte order mark": b"\xef\xbb\xbf",
    "byte order mark twice": b"\xef\xbb\xbf\xef\xbb\xbf" + MORE,
    "part of a byte order mark": b"\xef\xbb{}\n{}",
    "lines at the limit": b'{"a":"%s"}\n{"a":"%s"}\n' % (FITS, FITS + b"x") + MORE,
    "line after a blank start that is too long": b" " * 20_000 + b"{}\n{}",
    "too long without a newline": ROWS + b"x" * 30_000,
}
Outcome = tuple[int, int, int, dict[str, int]] | str


def converted(body: bytes, piece: int, *, concatenated: bool = False) -> Outcome:
    cuts = range(piece, len(body), piece)
    (counts,) = read_file(body, cuts=cuts, max_line_bytes=LINE_BYTES, concatenated=concatenated).counts
    if counts.error is not None:
        return "refused"
    return counts.lines, counts.rows, counts.blank_lines, dict(counts.rejects)


def count_lines(s3: Any, size: int, *, concatenated: bool = False, max_line_bytes: int = LINE_BYTES) -> Outcome:
    """The counts of the verification's reader for a file of this size."""
    rules = InputRules(max_line_bytes, concatenated, provenance=False)
    found = Counter(
        pairs if pairs is None or isinstance(pairs, str) else 0
        for _, pairs in read_lines(s3, ObjectVersion("b", "k", "e", size, "", "v"), rules)
    )
    rejects = {reason: count for reason, count in found.items() if isinstance(reason, str)}
    return found.total(), found[0], found[None], rejects


def verified(body: bytes, *, concatenated: bool = False) -> Outcome:
    try:
        return count_lines(OneObject(body), len(body), concatenated=concatenated)
    except (OSError, EOFError):
        return "refused"


@pytest.mark.parametrize("name", FILES)
def test_both_readers_agree_on_a_file(name: str) -> None:
    body = FILES[name]
    outcome = verified(body)
    assert outcome == converted(body, 1 << 20)
    assert outcome == converted(body, 7)
    outcome = verified(body, concatenated=True)
    assert outcome == converted(body, 1 << 20, concatenated=True)
    assert outcome == converted(body, 1, concatenated=True)


def test_both_readers_agree_on_damaged_files() -> None:
    """Cut at any byte, with one changed bit, or joined with another file; the result is rarely a valid file."""
    source = random.Random(7)
    for _ in range(400):
        body = bytearray(source.choice(list(FILES.values())))
        match source.randrange(3):
            case 0:
                del body[source.randrange(len(body) + 1) :]
            case 1 if body:
                body[source.randrange(len(body))] ^= 1 << source.randrange(8)
            case _:
                body += source.choice(list(FILES.values()))
        assert verified(bytes(body)) == converted(bytes(body), 1 << 20), bytes(body)
