"""S3 as far as a task needs it, on the local disk: what stands in for the network when the conversion is measured."""

from __future__ import annotations

import base64
import os
from typing import IO, TYPE_CHECKING, cast

from obstore.store import LocalStore

from lake.manifest import ObjectVersion
from transform.source import Source

if TYPE_CHECKING:
    from pathlib import Path

    from mypy_boto3_s3 import S3Client
    from obstore.store import S3Store


def local_source() -> Source:
    """The product's own source over folders: a bucket is a folder, an object a file of it."""
    return Source(open_store=lambda folder: cast("S3Store", LocalStore(folder)))


def local_version(path: Path) -> ObjectVersion:
    """A file as an object version. The version is not looked at: a folder has only one."""
    return ObjectVersion(str(path.parent), path.name, "", path.stat().st_size, "2026-03-17T00:00:00.000Z", "1")


class LocalSink:
    """Takes uploads of one part: reads them to their end, as sending would, and gives the file its final name.

    So our output is written to the disk once, as that of the other ways is.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def as_client(self) -> S3Client:
        """For those who ask for the real one."""
        return cast("S3Client", self)

    def create_multipart_upload(self, **request: str) -> dict[str, str]:
        """The key's last part is the id."""
        return {"UploadId": request["Key"].rpartition("/")[2]}

    def upload_part(self, *, UploadId: str, Body: IO[bytes], ContentMD5: str, **_: object) -> dict[str, str]:  # noqa: N803
        """The body must be a file on the same disk; the MD5 was calculated by the caller, as for S3."""
        while Body.read(1 << 20):
            pass
        os.link(Body.name, self._folder / UploadId)
        return {"ETag": f'"{base64.b64decode(ContentMD5).hex()}"'}

    def abort_multipart_upload(self, *, UploadId: str, **_: object) -> dict[str, str]:  # noqa: N803
        """Remove the file."""
        (self._folder / UploadId).unlink(missing_ok=True)
        return {}
