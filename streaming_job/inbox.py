"""What still lies in the inbox, and putting an unreadable checkpoint aside."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lake.layout import CHECKPOINT, INBOX
from lake.manifest import Lane

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from mypy_boto3_s3 import S3Client

    from transform.context import JobServices


def unfinished(services: JobServices) -> bool:
    """Whether a pointer in the inbox names a manifest that is open; pointers of finished ones linger for a while."""
    manifests = services.ledger.manifests
    seen = set()
    for key in _keys(services.s3, services.resources.control_bucket, INBOX):
        manifest = key.removeprefix(INBOX).rpartition("-")[0]
        if manifest and manifest not in seen:
            seen.add(manifest)
            row = manifests.get(manifest)
            # What was forced is open in the batch lane, while its old pointer may linger here.
            if row is not None and row.open and row.lane == Lane.STREAM:
                return True
    return False


def set_checkpoint_aside(s3: S3Client, control_bucket: str, now: datetime) -> str:
    """Move the checkpoint's objects to a new prefix, which is returned.

    Nothing is lost with it: a new checkpoint sees all pointers in the inbox again, and the ledger knows which are done.
    """
    aside = f"{CHECKPOINT.rstrip('/')}-set-aside-{now:%Y%m%dT%H%M%S%f}/"
    for key in list(_keys(s3, control_bucket, CHECKPOINT)):
        s3.copy_object(
            Bucket=control_bucket,
            Key=aside + key.removeprefix(CHECKPOINT),
            CopySource={"Bucket": control_bucket, "Key": key},
        )
        s3.delete_object(Bucket=control_bucket, Key=key)
    return aside


def _keys(s3: S3Client, bucket: str, prefix: str) -> Iterator[str]:
    for page in s3.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=prefix):
        for item in page.get("Contents", []):
            yield item["Key"]
