"""Objects as lines: every compression, every range size, lines that are too long to be kept."""

import bz2
import errno
import gzip
import io
from typing import Any
from unittest.mock import Mock

import pyarrow as pa
import pytest
from boto3.exceptions import RetriesExceededError
from botocore.exceptions import ClientError, ReadTimeoutError

from lake.commit import PendingObject, SourceCount
from lake.manifest import ObjectVersion
from verify import objects
from verify.elements import lines_of
from verify.manifest_check import ExpectedFile, digest_input, digest_lake
from verify.objects import GoneError, open_text
from verify.quarantine_records import QuarantinedFile
from verify.rows import InputRules

BODY = b'{"a":1}\n\n' + b"x" * 100 + b"\n" + b"y" * 50


class OneObject:
    """An S3 with one object."""

    def __init__(self, body: bytes, error: str | None = None) -> None:
        self.body, self.error = body, error
        self.requests: list[dict[str, Any]] = []

    def get_object(self, **request: Any) -> dict[str, Any]:
        self.requests.append(request)
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


def test_no_other_version_is_read() -> None:
    versioned, unversioned = OneObject(BODY), OneObject(BODY)
    read(versioned, len(BODY))
    read(unversioned, len(BODY), version=None)
    assert versioned.requests[0]["VersionId"] == "v1"
    assert unversioned.requests[0]["IfMatch"] == '"etag"'


@pytest.mark.parametrize("code", ["NoSuchKey", "NoSuchVersion", "PreconditionFailed"])
def test_an_object_that_is_gone_is_not_an_error_of_the_request(code: str) -> None:
    with pytest.raises(GoneError, match=code):
        read(OneObject(BODY, code), len(BODY))


def test_a_denied_object_is_not_gone() -> None:
    with pytest.raises(ClientError, match="AccessDenied"):
        read(OneObject(BODY, "AccessDenied"), len(BODY))


STALLED = ReadTimeoutError(endpoint_url="https://s3")
FULL_DISK = OSError(errno.ENOSPC, "no space left on device")
DISABLED_KEY = ClientError({"Error": {"Code": "KMS.DisabledException", "Message": ""}}, "GetObject")


@pytest.mark.parametrize(
    ("raised", "error"),
    [
        (STALLED, STALLED),
        (FULL_DISK, FULL_DISK),
        (DISABLED_KEY, DISABLED_KEY),
        (RetriesExceededError(STALLED), STALLED),  # type: ignore[arg-type]
    ],
)
def test_a_published_object_that_cannot_be_read_now_does_not_differ(raised: Exception, error: Exception) -> None:
    s3: Any = Mock(**{"download_file.side_effect": raised})
    with pytest.raises(type(error)) as found:
        digest_lake(s3, [PendingObject("lake", "a.parquet", "", (), "", 1, 1)])
    assert found.value is error


def test_an_input_file_that_cannot_be_read_now_does_not_differ() -> None:
    s3: Any = Mock(**{"get_object.side_effect": STALLED})
    file = ObjectVersion("input", "a.json", "etag", 9, "2026-03-04T12:00:00.000+00:00", "v1")
    expected = ExpectedFile(file, QuarantinedFile(), SourceCount(file.uri, "v1", 9, 1, 1, 0, {}, None, None))
    with pytest.raises(ReadTimeoutError):
        digest_input(InputRules(1000, concatenated=False, provenance=False), s3, [expected])
