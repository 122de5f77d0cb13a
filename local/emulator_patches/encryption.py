"""S3: a bucket's encryption comes from the template, and under a KMS key an ETag says nothing about the content.

Amazon S3 API Reference, "Object": the ETag of an object that a KMS key encrypts is not an MD5.
"""

from __future__ import annotations

import hashlib
import threading
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any
from xml.etree.ElementTree import Element, SubElement, tostring

from ministack.services import s3  # type: ignore[import-untyped]
from ministack.services.cloudformation import provisioners  # type: ignore[import-untyped]

from local.emulator_patches import EmulatorValue

KMS = "aws:kms"


class _Opaque(threading.local):
    """Which MD5s of the current request are replaced. The event of an object is sent by another thread."""

    content = False
    parts = False


_opaque = _Opaque()


def patch() -> None:
    provisioners._S3_BUCKET_CONFIGURATIONS += (
        ("BucketEncryption", _configuration, s3._put_bucket_encryption, s3._delete_bucket_encryption),
    )
    _patch_etags()


def _configuration(encryption: Mapping[str, EmulatorValue]) -> bytes:
    root = Element("ServerSideEncryptionConfiguration", xmlns=s3.S3_NS)
    for given in encryption["ServerSideEncryptionConfiguration"]:
        rule = SubElement(root, "Rule")
        applied = SubElement(rule, "ApplyServerSideEncryptionByDefault")
        for name, value in given["ServerSideEncryptionByDefault"].items():
            SubElement(applied, name).text = value
        SubElement(rule, "BucketKeyEnabled").text = str(given.get("BucketKeyEnabled", False)).lower()
        blocked = SubElement(rule, "BlockedEncryptionTypes")
        for kind in given.get("BlockedEncryptionTypes", {}).get("EncryptionType", ()):
            SubElement(blocked, "EncryptionType").text = kind
    return bytes(tostring(root))


def _patch_etags() -> None:
    put, upload, complete, digest = s3._put_object, s3._upload_part, s3._complete_multipart_upload, s3.md5_hash

    def put_object(bucket: str, key: str, body: bytes, headers: dict[str, str]) -> EmulatorValue:
        default = s3._bucket_default_sse_headers(bucket).get("x-amz-server-side-encryption")
        with _opaque_etags("content", headers.get("x-amz-server-side-encryption") or default):
            return put(bucket, key, body, headers)

    def upload_part(
        bucket: str, key: str, body: bytes, query_params: dict[str, Any], headers: dict[str, str]
    ) -> EmulatorValue:
        with _opaque_etags("content", _encryption_of_upload(query_params)):
            return upload(bucket, key, body, query_params, headers)

    def complete_multipart_upload(
        bucket: str, key: str, body: bytes, query_params: dict[str, Any], headers: dict[str, str] | None = None
    ) -> EmulatorValue:
        with _opaque_etags("parts", _encryption_of_upload(query_params)):
            return complete(bucket, key, body, query_params, headers)

    s3._put_object, s3._upload_part, s3._complete_multipart_upload = put_object, upload_part, complete_multipart_upload
    s3.md5_hash = lambda body: uuid.uuid4().hex if _opaque.content else digest(body)
    # The ETag of a completed upload is computed in place, by the module's own name.
    s3.hashlib = _Hashes()


class _Hashes:
    """``hashlib`` as the emulator's S3 sees it."""

    def __getattr__(self, name: str) -> EmulatorValue:
        return getattr(hashlib, name)

    def md5(self, body: bytes) -> EmulatorValue:
        """The MD5; while an upload under a KMS key is completed, that of a random value."""
        return hashlib.md5(uuid.uuid4().bytes if _opaque.parts else body, usedforsecurity=False)


def _encryption_of_upload(query_params: Mapping[str, Any]) -> str | None:
    upload = s3._multipart_uploads.get(s3._qp(query_params, "uploadId"))
    return None if upload is None else upload["preserved_headers"].get("x-amz-server-side-encryption")


@contextmanager
def _opaque_etags(which: str, encryption: str | None) -> Iterator[None]:
    setattr(_opaque, which, encryption == KMS)
    try:
        yield
    finally:
        setattr(_opaque, which, False)
