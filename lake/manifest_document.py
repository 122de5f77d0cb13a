"""Manifest documents on S3, which the ledger's rows bind by their SHA-256."""

from __future__ import annotations

import hashlib
from collections.abc import Collection
from typing import TYPE_CHECKING

from lake.documents import get_bound_document, put_document
from lake.layout import manifest_key
from lake.manifest import Manifest, decode_manifest, encode_manifest

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

    from lake.ledger import ManifestRow


def write_manifest(s3: S3Client, control_bucket: str, manifest: Manifest) -> str:
    """Put the document; ids are unique, so one invocation only writes it. Returns its SHA-256 (hexadecimal)."""
    body = encode_manifest(manifest)
    put_document(s3, control_bucket, manifest_key(manifest.id), body)
    return hashlib.sha256(body).hexdigest()


def read_manifest(s3: S3Client, control_bucket: str, row: ManifestRow, allowed_buckets: Collection[str]) -> Manifest:
    """Get the document that the ledger row of a manifest is bound to.

    Raises
    ------
    InvalidDocumentError
        It is gone, was changed after it was recorded, or names a bucket that is not in ``allowed_buckets``.
    NewerDocumentError
        A newer version has written it.
    """
    body = get_bound_document(s3, control_bucket, manifest_key(row.id), row.manifest_sha256)
    return decode_manifest(body, allowed_buckets)
