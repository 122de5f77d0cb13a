"""Objects as lines: every compression, every range size, lines that are too long to be kept."""

import bz2
import gzip
import io
from errno import ENOSPC
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from botocore.exceptions import ClientError, ConnectTimeoutError, ReadTimeoutError

from lake.commit import PendingObject
from lake.manifest import ObjectVersion
from verify import objects
from verify.elements import lines_of
from verify.manifest_check import ExpectedFile, InputTask, LakeTask, digest_input, digest_lake
from verify.objects import GoneError, open_text
from verify.quarantine_records import QuarantinedFile

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


@pytest.mark.parametrize("is_lake", [True, False])
@pytest.mark.parametrize(
    "error", [ReadTimeoutError(endpoint_url="s3"), ConnectTimeoutError(endpoint_url="s3"), OSError(ENOSPC, "disk full")]
)
def test_an_error_of_network_or_disk_says_nothing_of_an_object(error: Exception, is_lake: bool) -> None:
    def fail(*_: Any, **__: Any) -> Any:
        raise error

    s3: Any = SimpleNamespace(get_object=fail, download_file=fail)
    file = ObjectVersion("input", "a.json", "e", 9, "", "v")
    lake = LakeTask((PendingObject("lake", "a.parquet", "", (), "", 9, 1),))
    files = InputTask((ExpectedFile(file, QuarantinedFile(), None),), 1000, concatenated=False, provenance=False)
    with pytest.raises(type(error)):
        digest_lake(s3, lake) if is_lake else digest_input(s3, files)


def test_a_denied_object_is_not_gone() -> None:
    with pytest.raises(ClientError, match="AccessDenied"):
        read(OneObject(BODY, "AccessDenied"), len(BODY))
