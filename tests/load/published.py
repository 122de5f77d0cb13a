"""What the result documents of a deployment say of its manifests. Times are seconds since the epoch."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mypy_boto3_s3 import S3Client


@dataclass(frozen=True, slots=True)
class PublishedManifest:
    """What a result document says."""

    job_run: str
    keys: tuple[str, ...]
    started: float
    published: float
    core_seconds: float


def published_manifests(s3: S3Client, control_bucket: str) -> Iterator[PublishedManifest]:
    """All that have been published."""
    for page in s3.get_paginator("list_objects_v2").paginate(Bucket=control_bucket, Prefix="results/"):
        for item in page.get("Contents", []):
            body: dict[str, Any] = json.loads(s3.get_object(Bucket=control_bucket, Key=item["Key"])["Body"].read())
            keys = (source["uri"].removeprefix("s3://").partition("/")[2] for source in body["sources"])
            started, published = (
                datetime.fromisoformat(body[field]).timestamp() for field in ("started_at", "published_at")
            )
            yield PublishedManifest(body["run"], tuple(keys), started, published, body["task_milliseconds"] / 1000)
