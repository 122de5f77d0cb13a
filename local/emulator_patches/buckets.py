"""S3: ranges of versions, checksums of whole uploads, and encryption by the template.

A multipart upload can have a checksum of its whole content; the emulator only knows the checksum of the parts'
checksums (Amazon S3 User Guide, "Checking object integrity for data uploads in Amazon S3": the type FULL_OBJECT). Under
a KMS key an ETag says nothing about the content (Amazon S3 API Reference, "Object").
"""

import hashlib
import re
import uuid
from collections.abc import Mapping
from contextvars import ContextVar
from types import MappingProxyType
from typing import Any
from xml.etree.ElementTree import Element, SubElement, tostring

from ministack.services import s3  # type: ignore[import-untyped]
from ministack.services.cloudformation import provisioners  # type: ignore[import-untyped]

from local.emulator_patches import EmulatorValue, Original, setting, wrap

ENCRYPTION, KMS = "x-amz-server-side-encryption", "aws:kms"
CHECKSUM_TYPE, FULL_OBJECT = "x-amz-checksum-type", "FULL_OBJECT"
UPLOAD_ID = re.compile(rb"<UploadId>([^<]+)</UploadId>")
_LISTED_KEYS = frozenset({"Key", "Prefix", "Delimiter", "KeyMarker", "NextKeyMarker"})

_random_md5: ContextVar[str] = ContextVar("random_md5", default="")
"""MD5s of the current request that are replaced: of its "content", or of an upload's "parts"."""
_completed: ContextVar[Mapping[str, EmulatorValue]] = ContextVar("completed_upload", default=MappingProxyType({}))


def patch() -> None:
    wrap(s3, "_get_object", _get_object)
    wrap(s3, "_put_object", _put_object)
    wrap(s3, "_upload_part", _upload_part)
    wrap(s3, "_create_multipart_upload", _create_multipart_upload)
    wrap(s3, "_complete_multipart_upload", _complete_multipart_upload)
    wrap(s3, "_composite_checksum", _composite_checksum)
    wrap(s3, "_record_object_version", _record_object_version)
    wrap(s3, "md5_hash", _md5_hash)
    # The ETag of a completed upload is computed inline, by the module's own name.
    s3.hashlib = _Hashes()
    provisioners._S3_BUCKET_CONFIGURATIONS += (
        ("BucketEncryption", _configuration, s3._put_bucket_encryption, s3._delete_bucket_encryption),
    )
    wrap(s3, "_xml_body", _xml_body)


def _xml_body(original: Original, root: Element) -> bytes:
    """Listings of versions escape keys, because XML cannot express all keys (``encoding-type``, which boto3 passes)."""
    if root.tag == "ListVersionsResult":
        for element in root.iter():
            if element.tag in _LISTED_KEYS:
                element.text = s3._url_encode(element.text or "")
        SubElement(root, "EncodingType").text = "url"
    return bytes(original(root))


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


def _put_object(original: Original, bucket: str, key: str, body: bytes, headers: dict[str, str]) -> EmulatorValue:
    given = headers.get(ENCRYPTION) or s3._bucket_default_sse_headers(bucket).get(ENCRYPTION)
    with setting(_random_md5, "content" if given == KMS else ""):
        return original(bucket, key, body, headers)


def _upload_part(original: Original, *request: EmulatorValue) -> EmulatorValue:
    _bucket, _key, _body, query_params, _headers = request
    with setting(_random_md5, "content" if _is_encrypted(_upload_of(query_params)) else ""):
        return original(*request)


def _create_multipart_upload(original: Original, bucket: str, key: str, headers: dict[str, str]) -> EmulatorValue:
    status, answered, body = original(bucket, key, headers)
    if status == 200 and headers.get(CHECKSUM_TYPE) == FULL_OBJECT:
        found = UPLOAD_ID.search(body)
        assert found is not None
        s3._multipart_uploads[found[1].decode()]["checksum_type"] = FULL_OBJECT
        answered = {**answered, CHECKSUM_TYPE: FULL_OBJECT}
    return status, answered, body


def _complete_multipart_upload(original: Original, *request: EmulatorValue) -> EmulatorValue:
    _bucket, _key, _body, query_params, _headers = request
    found = _upload_of(query_params)
    with setting(_completed, found), setting(_random_md5, "parts" if _is_encrypted(found) else ""):
        return original(*request)


def _composite_checksum(original: Original, algorithm: str, parts: list[str]) -> EmulatorValue:
    if not algorithm or _completed.get().get("checksum_type") != FULL_OBJECT:
        return original(algorithm, parts)
    uploaded = _completed.get()["parts"]
    return s3._compute_s3_checksum(algorithm, b"".join(uploaded[number]["body"] for number in sorted(uploaded)))


def _record_object_version(original: Original, *version: EmulatorValue) -> EmulatorValue:
    _bucket, _key, _prior, item, _content = version
    if _completed.get().get("checksum_type") == FULL_OBJECT:
        item["checksum_type"] = FULL_OBJECT
    return original(*version)


def _md5_hash(original: Original, body: bytes) -> str:
    return uuid.uuid4().hex if _random_md5.get() == "content" else str(original(body))


class _Hashes:
    """``hashlib`` as the emulator's S3 sees it."""

    def __getattr__(self, name: str) -> EmulatorValue:
        return getattr(hashlib, name)

    def md5(self, body: bytes) -> EmulatorValue:
        """Return the MD5; while an upload under a KMS key is completed, the MD5 of a random value."""
        return hashlib.md5(uuid.uuid4().bytes if _random_md5.get() == "parts" else body, usedforsecurity=False)


def _upload_of(query_params: Mapping[str, Any]) -> Mapping[str, EmulatorValue]:
    """Return the upload of a request; empty if there is none."""
    upload: Mapping[str, EmulatorValue] = s3._multipart_uploads.get(s3._qp(query_params, "uploadId")) or {}
    return upload


def _is_encrypted(upload: Mapping[str, EmulatorValue]) -> bool:
    return bool(upload.get("preserved_headers", {}).get(ENCRYPTION) == KMS)


def _get_object(
    original: Original, bucket: str, key: str, headers: dict[str, str], query_params: dict[str, Any] | None = None
) -> tuple[int, dict[str, str], bytes]:
    """Reading a version of an object honours ``Range``; the emulator would return the whole object.

    A range comes without the checksum of the whole object, which a client would compare with the range.
    """
    byte_range = headers.get("range", "")
    if byte_range:
        headers = {name: value for name, value in headers.items() if name != "x-amz-checksum-mode"}
    status, response_headers, body = original(bucket, key, headers, query_params)
    if status != 200 or not byte_range or not (query_params or {}).get("versionId"):
        return status, response_headers, body
    parsed = s3._parse_range(byte_range, len(body))
    if parsed is None:
        error = s3._xml_body(s3._range_error_xml(bucket, key))
        return 416, {"Content-Type": "application/xml", "Content-Range": f"bytes */{len(body)}"}, error
    first, last = parsed
    part = body[first : last + 1]
    range_headers = {"Content-Length": str(len(part)), "Content-Range": f"bytes {first}-{last}/{len(body)}"}
    return 206, {**response_headers, **range_headers}, part
