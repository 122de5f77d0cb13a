"""S3: ranges of versions, checksums of whole uploads, encryption by the template, and denies of bucket policies.

A multipart upload can have a checksum of its whole content; the emulator only knows the one of its parts' own (Amazon
S3 User Guide, "Checking object integrity for data uploads in Amazon S3": the type FULL_OBJECT). Under a KMS key an ETag
says nothing about the content (Amazon S3 API Reference, "Object").
"""

from __future__ import annotations

import contextvars
import hashlib
import re
import threading
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any
from xml.etree.ElementTree import Element, SubElement, tostring

from ministack.core.iam_actions import _s3_action, s3_service_context  # type: ignore[import-untyped]
from ministack.core.iam_evaluator import EvalContext, evaluate_resource_policy  # type: ignore[import-untyped]
from ministack.core.responses import get_account_id, get_region  # type: ignore[import-untyped]
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
    _patch_ranges()
    _patch_create()
    _patch_complete()
    _patch_answers()
    provisioners._S3_BUCKET_CONFIGURATIONS += (
        ("BucketEncryption", _configuration, s3._put_bucket_encryption, s3._delete_bucket_encryption),
    )
    _patch_etags()
    _patch_policies()


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


def _patch_ranges() -> None:
    """Reading a version of an object honours ``Range``; the emulator would return the whole object."""
    original = s3._get_object

    def get_object(
        bucket_name: str, key: str, headers: dict[str, str], query_params: dict[str, Any] | None = None
    ) -> tuple[int, dict[str, str], bytes]:
        status, response_headers, body = original(bucket_name, key, headers, query_params)
        byte_range = headers.get("range", "")
        if status != 200 or not byte_range or not (query_params or {}).get("versionId"):
            return status, response_headers, body
        parsed = s3._parse_range(byte_range, len(body))
        if parsed is None:
            error = s3._xml_body(s3._range_error_xml(bucket_name, key))
            return 416, {"Content-Type": "application/xml", "Content-Range": f"bytes */{len(body)}"}, error
        first, last = parsed
        part = body[first : last + 1]
        range_headers = {"Content-Length": str(len(part)), "Content-Range": f"bytes {first}-{last}/{len(body)}"}
        return 206, {**response_headers, **range_headers}, part

    s3._get_object = get_object


def _patch_policies() -> None:
    """The explicit denies of a bucket policy hold for the account's root too, whom the emulator lets pass."""
    original = s3._dispatch

    def dispatch(
        method: str, bucket: str, key: str, headers: dict[str, str], body: bytes, query_params: dict[str, Any]
    ) -> EmulatorValue:
        policy = s3._bucket_policies.get(bucket)
        # Who may change the policy could otherwise not take back a deny of everything.
        if policy is None or "policy" in query_params:
            return original(method, bucket, key, headers, body, query_params)
        path = f"/{bucket}/{key}" if key else f"/{bucket}"
        action = f"s3:{_s3_action(method, path, query_params)}"
        account = get_account_id()
        context = EvalContext(
            principal_arn=f"arn:aws:iam::{account}:root",
            principal_type="Root",
            principal_account=account,
            action=action,
            resource_arn=f"arn:aws:s3:::{path.removeprefix('/')}",
            region=get_region(),
            # The emulator is reached over loopback only; on AWS these requests would be encrypted.
            secure_transport=True,
            service_context=s3_service_context(action, query_params, path, headers),
        )
        if evaluate_resource_policy(policy, context).decision == "Deny":
            return s3._error("AccessDenied", "Access Denied", 403, path)
        return original(method, bucket, key, headers, body, query_params)

    s3._dispatch = dispatch


UPLOAD_ID = re.compile(rb"<UploadId>([^<]+)</UploadId>")
COMPOSITE = re.compile(r"-\d+$")
"""End of a checksum that was computed from those of the parts."""

_upload: contextvars.ContextVar[EmulatorValue] = contextvars.ContextVar("completed_upload", default=None)


def _patch_create() -> None:
    create = s3._create_multipart_upload

    def create_multipart_upload(bucket: str, key: str, headers: dict[str, str]) -> EmulatorValue:
        status, answered, body = create(bucket, key, headers)
        if status == 200 and headers.get("x-amz-checksum-type") == "FULL_OBJECT":
            found = UPLOAD_ID.search(body)
            assert found is not None
            s3._multipart_uploads[found[1].decode()]["checksum_type"] = "FULL_OBJECT"
            answered = {**answered, "x-amz-checksum-type": "FULL_OBJECT"}
        return status, answered, body

    s3._create_multipart_upload = create_multipart_upload


def _patch_complete() -> None:
    complete, composite = s3._complete_multipart_upload, s3._composite_checksum

    def complete_multipart_upload(
        bucket: str, key: str, body: bytes, query_params: dict[str, Any], headers: dict[str, str] | None = None
    ) -> EmulatorValue:
        token = _upload.set(s3._multipart_uploads.get(s3._qp(query_params, "uploadId")))
        try:
            return complete(bucket, key, body, query_params, headers)
        finally:
            _upload.reset(token)

    def checksum(algorithm: str, parts: list[str]) -> EmulatorValue:
        upload = _upload.get()
        if not algorithm or upload is None or upload.get("checksum_type") != "FULL_OBJECT":
            return composite(algorithm, parts)
        whole = b"".join(upload["parts"][number]["body"] for number in sorted(upload["parts"]))
        return s3._compute_s3_checksum(algorithm, whole)

    s3._complete_multipart_upload = complete_multipart_upload
    s3._composite_checksum = checksum


def _patch_answers() -> None:
    describe = s3._object_response_headers

    def object_response_headers(item: EmulatorValue, *args: EmulatorValue, **options: EmulatorValue) -> EmulatorValue:
        headers = describe(item, *args, **options)
        values = item.get("checksums") or {}
        if "x-amz-checksum-type" in headers and not any(COMPOSITE.search(value) for value in values.values()):
            headers["x-amz-checksum-type"] = "FULL_OBJECT"
        return headers

    s3._object_response_headers = object_response_headers
