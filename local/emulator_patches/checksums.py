"""S3: a multipart upload can have a checksum of its whole content; the emulator only knows the one of its parts' own.

Amazon S3 User Guide, "Checking object integrity for data uploads in Amazon S3": the type FULL_OBJECT.
"""

from __future__ import annotations

import contextvars
import re
from typing import Any

from ministack.services import s3  # type: ignore[import-untyped]

from local.emulator_patches import EmulatorValue

UPLOAD_ID = re.compile(rb"<UploadId>([^<]+)</UploadId>")
COMPOSITE = re.compile(r"-\d+$")
"""End of a checksum that was computed from those of the parts."""

_upload: contextvars.ContextVar[EmulatorValue] = contextvars.ContextVar("completed_upload", default=None)


def patch() -> None:
    _patch_create()
    _patch_complete()
    _patch_answers()


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
