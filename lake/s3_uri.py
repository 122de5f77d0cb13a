"""S3 URIs, and listings of the objects under a prefix."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lake.errors import InvalidInputError

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client
    from mypy_boto3_s3.type_defs import ObjectTypeDef


@dataclass(frozen=True, slots=True)
class S3Uri:
    """All versions of one key of a bucket."""

    bucket: str
    key: str

    def __str__(self) -> str:
        return f"s3://{self.bucket}/{self.key}"


def parse_s3_uri(uri: object) -> S3Uri:
    """Read ``s3://bucket/key``, or ``s3a://bucket/key`` as Spark writes it; raises ``InvalidInputError``."""
    scheme, _, rest = uri.partition("://") if isinstance(uri, str) else ("", "", "")
    bucket, _, key = rest.partition("/")
    if scheme not in ("s3", "s3a") or not bucket or not key:
        raise InvalidInputError(f"{uri!r} is not a valid S3 URI: pass s3://bucket/key")
    return S3Uri(bucket, key)


def list_objects(s3: S3Client, bucket: str, prefix: str = "", after: str = "") -> Iterator[ObjectTypeDef]:
    """The objects whose keys begin with ``prefix`` and come after ``after``; one page is in memory at a time.

    Raises botocore's errors.
    """
    while True:
        page = s3.list_objects_v2(Bucket=bucket, Prefix=prefix, StartAfter=after)
        found = page.get("Contents", [])
        yield from found
        if not page["IsTruncated"]:
            return
        after = found[-1]["Key"]
