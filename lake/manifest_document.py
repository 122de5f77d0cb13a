"""Manifest documents on S3, which the ledger's rows bind by their SHA-256."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from lake.documents import get_document, put_document
from lake.errors import InvalidDocumentError
from lake.layout import manifest_key
from lake.manifest import decode_manifest, encode_manifest

if TYPE_CHECKING:
    from collections.abc import Collection

    from mypy_boto3_s3 import S3Client

    from lake.ledger import ManifestRow
    from lake.manifest import Manifest


def write_manifest(s3: S3Client, control_bucket: str, manifest: Manifest) -> None:
    """Put the document; ids are unique, so one invocation only writes it."""
    put_document(s3, control_bucket, manifest_key(manifest.id), encode_manifest(manifest))


def read_manifest(s3: S3Client, control_bucket: str, row: ManifestRow, allowed_buckets: Collection[str]) -> Manifest:
    """Get the document that the ledger row of a manifest is bound to.

    Raises
    ------
    InvalidDocumentError
        It is gone, was changed after it was recorded, or names a bucket that is not in ``allowed_buckets``.
    NewerDocumentError
        A newer version has written it.
    """
    key = manifest_key(row.id)
    body = get_document(s3, control_bucket, key)
    if row.manifest_sha256 != hashlib.sha256(body).hexdigest():
        raise InvalidDocumentError(
            f"s3://{control_bucket}/{key} was changed after the ledger recorded it, so nothing of it is used: restore "
            "the object (protection.versions keeps earlier versions)"
        )
    return decode_manifest(body, allowed_buckets)
