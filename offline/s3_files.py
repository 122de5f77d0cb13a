"""Objects of S3 as input of a conversion on this machine, read with the credentials of the environment."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import TYPE_CHECKING

from lake.errors import InvalidInputError
from lake.manifest import ObjectVersion
from lake.s3_uri import list_objects
from offline.local_files import LocalFile, LocalFiles, denial
from transform.source import DeniedFileError, Source

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client
    from typing_extensions import Buffer

SCHEME = "s3://"


class InputFiles:
    """Reads ranges of files of this machine and of S3."""

    def __init__(self, region: str) -> None:
        self._region = region
        self._local = LocalFiles()

    def fetch(self, file: ObjectVersion, start: int, end: int) -> Buffer:
        """The bytes [start, end); raises what ``LocalFiles.fetch`` and ``Source.fetch`` raise."""
        if isinstance(file, LocalFile):
            return self._local.fetch(file, start, end)
        try:
            return self._source.fetch(file, start, end)
        except DeniedFileError as error:
            raise DeniedFileError(denial(error.__cause__)) from error.__cause__

    @cached_property
    def _source(self) -> Source:
        return Source.in_region(self._region, None)


def list_named(s3: S3Client, uri: str) -> Iterator[ObjectVersion]:
    """The object of this name, and every object below the name as a folder; page by page.

    Raises
    ------
    InvalidInputError
        No bucket is named.
    BotoCoreError, ClientError
        S3 refused the listing or did not answer.
    """
    bucket, _, key = uri.removeprefix(SCHEME).partition("/")
    if not bucket:
        raise InvalidInputError(f"{uri!r} names no bucket: pass s3://bucket/key or s3://bucket/folder/")
    folder = key if key.endswith("/") or not key else f"{key}/"
    for item in list_objects(s3, bucket, key):
        if item["Key"] == key or item["Key"].startswith(folder):
            yield ObjectVersion.of(bucket, item["Key"], item["ETag"], item["Size"], item["LastModified"], None)
