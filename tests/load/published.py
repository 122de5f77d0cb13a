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

    keys: tuple[str, ...]
    published: float


def published_manifests(s3: S3Client, control_bucket: str) -> Iterator[PublishedManifest]:
    """All that have been published."""
    for page in s3.get_paginator("list_objects_v2").paginate(Bucket=control_bucket, Prefix="results/"):
        for item in page.get("Contents", []):
            body: dict[str, Any] = json.loads(s3.get_object(Bucket=control_bucket, Key=item["Key"])["Body"].read())
            keys = (source["uri"].removeprefix("s3://").partition("/")[2] for source in body["sources"])
            published = datetime.fromisoformat(body["published_at"]).timestamp()
            yield PublishedManifest(tuple(keys), published)
