"""JSON documents on S3: one encoding, one way to put them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client


def encode_document(body: object) -> bytes:
    """UTF-8 JSON without spaces."""
    return json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()


def put_document(s3: S3Client, bucket: str, key: str, body: bytes) -> None:
    """Put an encoded document under ``key``. Raises botocore's errors."""
    s3.put_object(Bucket=bucket, Key=key, Body=body, ContentType="application/json")
