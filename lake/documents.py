"""JSON documents on S3: one encoding, one way to put and to get them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from lake.errors import InvalidDocumentError, InvalidInputError

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client


def encode_document(body: object) -> bytes:
    """UTF-8 JSON without spaces."""
    return json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()


def put_document(s3: S3Client, bucket: str, key: str, body: bytes) -> None:
    """Put an encoded document under ``key``. Raises botocore's errors."""
    s3.put_object(Bucket=bucket, Key=key, Body=body, ContentType="application/json")


def get_document(s3: S3Client, bucket: str, key: str) -> bytes:
    """The body of a document that the ledger names. Raises ``InvalidDocumentError`` when it is gone."""
    try:
        return s3.get_object(Bucket=bucket, Key=key)["Body"].read()
    except s3.exceptions.NoSuchKey as error:
        raise InvalidDocumentError(
            f"s3://{bucket}/{key} is gone: restore the object (protection.versions keeps earlier versions)"
        ) from error


def find_document(s3: S3Client, bucket: str, key: str) -> Any:  # noqa: ANN401
    """The parsed document under ``key``; None: there is none. Raises botocore's other errors."""
    try:
        return json.loads(s3.get_object(Bucket=bucket, Key=key)["Body"].read())
    except s3.exceptions.NoSuchKey:
        return None


def read_uri(s3: S3Client, uri: str) -> bytes:
    """The body of the object at ``s3://bucket/key``; raises ``InvalidInputError`` when the URI is not valid."""
    parts = urlsplit(uri, allow_fragments=False)
    if parts.scheme not in ("s3", "s3a") or not parts.path.strip("/"):
        raise InvalidInputError(f"{uri!r} is not a valid S3 URI: set it to s3://bucket/key")
    return s3.get_object(Bucket=parts.netloc, Key=parts.path.removeprefix("/"))["Body"].read()
