"""JSON documents on S3: one encoding, one way to put and to get them."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any

from lake.errors import InvalidDocumentError
from lake.s3_uri import parse_s3_uri

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


def get_bound_document(s3: S3Client, bucket: str, key: str, sha256: str) -> bytes:
    """The body of a document whose SHA-256 (hexadecimal) the ledger has recorded.

    Raises ``InvalidDocumentError`` when it is gone or was changed after that.
    """
    body = get_document(s3, bucket, key)
    if hashlib.sha256(body).hexdigest() != sha256:
        raise InvalidDocumentError(
            f"s3://{bucket}/{key} was changed after the ledger recorded it, so nothing of it is used: restore "
            "the object (protection.versions keeps earlier versions)"
        )
    return body


def find_document(s3: S3Client, bucket: str, key: str) -> Any:  # noqa: ANN401
    """The parsed document under ``key``; None: there is none. Raises botocore's other errors."""
    try:
        return json.loads(s3.get_object(Bucket=bucket, Key=key)["Body"].read())
    except s3.exceptions.NoSuchKey:
        return None


def read_uri(s3: S3Client, uri: str) -> bytes:
    """The body of the object at ``s3://bucket/key``; raises ``InvalidInputError`` when the URI is not valid."""
    place = parse_s3_uri(uri)
    return s3.get_object(Bucket=place.bucket, Key=place.key)["Body"].read()
