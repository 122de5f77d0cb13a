"""What a task needs of S3, on the local disk: it replaces the network while the conversion is measured."""

from __future__ import annotations

import os
from pathlib import Path
from typing import IO, TYPE_CHECKING, cast

from obstore.store import LocalStore, S3Store

from lake.manifest import ObjectVersion
from transform.source import Source

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client


def local_source() -> Source:
    """The product's own source over folders: a bucket is a folder, an object is a file in it."""
    return Source(lambda folder: cast("S3Store", LocalStore(folder)), _no_client)


def _no_client() -> S3Client:
    raise NotImplementedError("every key can be a path: no client is needed")


def local_version(path: Path) -> ObjectVersion:
    """A file as an object version. No reader looks at the version: a folder has only one."""
    return ObjectVersion(str(path.parent), path.name, "", path.stat().st_size, "2026-03-17T00:00:00.000Z", "1")


class LocalSink:
    """Accepts uploads of one part: reads each to its end, as a network client would, and links it to its final name.

    So hybrid-router's output is written to the disk once, as the output of every other competitor is.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def as_client(self) -> S3Client:
        """This sink, for functions whose parameter is an S3 client."""
        return cast("S3Client", self)

    def create_multipart_upload(self, **request: str) -> dict[str, str]:
        """The upload's id is the last part of the key."""
        return {"UploadId": request["Key"].rpartition("/")[2]}

    def upload_part(self, *, UploadId: str, Body: IO[bytes], ChecksumCRC32: str, **_: object) -> dict[str, str]:  # noqa: N803
        """The body must be a file on the same disk; the caller has calculated the checksum, as for S3."""
        while Body.read(1 << 20):
            pass
        os.link(Body.name, self._folder / UploadId)
        return {"ETag": '"e"', "ChecksumCRC32": ChecksumCRC32}

    def abort_multipart_upload(self, *, UploadId: str, **_: object) -> dict[str, str]:  # noqa: N803
        """Remove the file."""
        (self._folder / UploadId).unlink(missing_ok=True)
        return {}
