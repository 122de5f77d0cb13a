"""Reads objects as streams with limited memory: ranges of one version, decompressed."""

import bz2
import io
import re
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
from boto3.exceptions import RetriesExceededError
from botocore.exceptions import ClientError

from lake.aws_types import Buffer, GetObjectOutputTypeDef, S3Client
from lake.commit import PendingObject, checksum_of
from lake.documents import refuse_cut
from lake.faults import KEY_CODES, NETWORK_ERRORS, Fault, error_code, is_denial, judge
from lake.manifest import UNVERSIONED, ObjectVersion

RANGE_BYTES = 8 << 20
INPUT_BYTES = 64 << 10
BUFFER_BYTES = 1 << 20

# The first bytes of compressed files: a second implementation of the rule of the conversion's reader.
GZIP = re.compile(rb"\x1f\x8b")
BZIP2 = re.compile(rb"BZh[1-9]")
# A zstd frame, or a skippable frame, which pzstd writes first.
ZSTD = re.compile(rb"(?:\x28\xb5\x2f\xfd|[\x50-\x5f]\x2a\x4d\x18)")
GZIP_WINDOW = 31
"""zlib's number for a gzip header and the largest window."""
PADDING = b"\0\r\n"
"""Bytes that may follow a member: zeros up to a block size, and an appended line ending."""


class GoneError(Exception):
    """This version of the object no longer exists or can no longer be read; the message is the reason."""


class ChunkStream(io.RawIOBase):
    """A stream of chunks, none of which is empty."""

    def __init__(self, chunks: Iterator[bytes]) -> None:
        super().__init__()
        self._chunks = chunks
        self._rest = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, target: Buffer) -> int:
        if not self._rest:
            self._rest = memoryview(next(self._chunks, b""))
        with memoryview(target).cast("B") as view:
            count = min(len(view), len(self._rest))
            view[:count] = self._rest[:count]
        self._rest = self._rest[count:]
        return count


def ranges_of(s3: S3Client, file: ObjectVersion) -> Iterator[bytes]:
    """The ranges of an object version, in order. Raises ``GoneError`` if S3 answers that it is not available."""
    for start in range(0, file.size, RANGE_BYTES):
        end = min(start + RANGE_BYTES, file.size)
        body = _read_range(s3, file, start, end)
        if len(body) != end - start:
            raise GoneError(f"it has fewer than the {file.size} bytes of its event")
        yield body


def _read_range(s3: S3Client, file: ObjectVersion, start: int, end: int, attempts: int = 3) -> bytes:
    body = get_range(s3, file, start, end)["Body"]
    try:
        return body.read()
    except NETWORK_ERRORS:
        # botocore retries requests but not reads of a body, and reading terabytes always loses some connections.
        if attempts == 1:
            raise
    return _read_range(s3, file, start, end, attempts - 1)


def get_range(s3: S3Client, file: ObjectVersion, start: int, end: int) -> GetObjectOutputTypeDef:
    """S3's answer with the bytes [start, end) of exactly this version, which is identified by its ETag if it has no id.

    If the bucket got versions later, such an object is the version ``null``. Raises ``GoneError``.
    """
    by_etag = {"IfMatch": f'"{file.etag}"'}
    null = {**by_etag, "VersionId": UNVERSIONED}
    gone: ClientError | None = None
    for version in (by_etag, null) if file.version_id is None else ({"VersionId": file.version_id},):
        request: dict[str, Any] = {"Bucket": file.bucket, "Key": file.key, **version}
        try:
            return s3.get_object(**request, Range=f"bytes={start}-{end - 1}")
        except ClientError as error:
            unreadable = judge(error) == Fault.FILE or error_code(error) in KEY_CODES
            # For the version null, a caller without s3:GetObjectVersion gets only a denial.
            if not unreadable and not (gone is not None and is_denial(error)):
                raise
            gone = gone or error
    assert gone is not None
    raise GoneError(f"S3 answers {error_code(gone)}") from gone


def inflated(stream: "io.BufferedReader[Any]", new_member: Callable[[], Any]) -> Iterator[bytes]:
    """All members of a gzip or bzip2 file. Raises ``OSError`` if it is damaged, ``EOFError`` if it is truncated."""
    member, rest = new_member(), b""
    while member is not None:
        # A bzip2 member with more output must not be fed, because it would keep the input.
        source = rest or (stream.read1(INPUT_BYTES) if getattr(member, "needs_input", True) else b"")
        try:
            text = member.decompress(source, BUFFER_BYTES)
        except zlib.error as error:
            raise OSError(str(error)) from error
        if text:
            yield text
        rest = getattr(member, "unconsumed_tail", b"")
        if member.eof:
            rest = member.unused_data.lstrip(PADDING)
            while not rest and (more := stream.read1(INPUT_BYTES)):
                rest = more.lstrip(PADDING)
            member = new_member() if rest else None
        elif not source and not text:
            raise EOFError("it is truncated")


def open_text(s3: S3Client, file: ObjectVersion) -> io.BufferedReader:
    """The file decompressed. Its first bytes, not its name, decide how it is compressed."""
    stream: io.BufferedReader = io.BufferedReader(ChunkStream(ranges_of(s3, file)), RANGE_BYTES)
    head = stream.peek(4)[:4]
    if ZSTD.match(head):
        text: Any = pa.CompressedInputStream(pa.PythonFile(stream, mode="r"), "zstd")
    elif GZIP.match(head):
        text = ChunkStream(inflated(stream, lambda: zlib.decompressobj(GZIP_WINDOW)))
    elif BZIP2.match(head):
        text = ChunkStream(inflated(stream, bz2.BZ2Decompressor))
    else:
        return stream
    return io.BufferedReader(text, BUFFER_BYTES)


def download(s3: S3Client, item: PendingObject, path: Path) -> bool:
    """Copy a published object to ``path``. False: its bytes have changed.

    Raises ``GoneError`` if it does not exist, and the errors of ``refuse_cut``.
    """
    try:
        s3.download_file(item.bucket, item.key, str(path))
    except ClientError as error:
        # An archived object still exists.
        if judge(error) == Fault.FILE and error_code(error) != "InvalidObjectState":
            raise GoneError(f"S3 answers {error_code(error)}") from error
        raise
    except RetriesExceededError as error:
        raise error.last_exception from error  # type: ignore[attr-defined]
    with path.open("rb") as file:
        is_same = checksum_of(file) == item.checksum
    if not is_same:
        refuse_cut(s3, item.bucket, item.key, path.stat().st_size)
    return is_same
