"""Listings of a bucket: the objects under a prefix, in the order of their keys."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client
    from mypy_boto3_s3.type_defs import ObjectTypeDef


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
