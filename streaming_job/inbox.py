"""The inbox's open manifests, and an unreadable checkpoint that is set aside."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lake.layout import CHECKPOINT, INBOX, manifest_of_pointer
from lake.manifest import Lane

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from mypy_boto3_s3 import S3Client

    from transform.context import JobServices


def has_open_manifests(services: JobServices) -> bool:
    """Whether a pointer in the inbox names an open manifest of the stream lane.

    The pointers alone do not tell: Spark deletes those of terminal manifests some time later.
    """
    manifests = services.ledger.manifests
    seen = set()
    for key in _keys(services.s3, services.resources.control_bucket, INBOX):
        manifest = manifest_of_pointer(key)
        if manifest and manifest not in seen:
            seen.add(manifest)
            row = manifests.get(manifest)
            # A forced manifest is open in the batch lane, and its old pointer may still be here.
            if row is not None and row.open and row.lane == Lane.STREAM:
                return True
    return False


def set_checkpoint_aside(s3: S3Client, control_bucket: str, now: datetime) -> str:
    """Move the checkpoint's objects to a new prefix, which is returned.

    No work is lost: a new checkpoint sees every pointer in the inbox again, and the ledger knows which are done.
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
