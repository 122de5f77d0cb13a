"""S3: reading a version of an object honours ``Range``; the emulator would return the whole object."""

from __future__ import annotations

from typing import Any


def patch() -> None:
    from ministack.services import s3  # type: ignore[import-untyped]  # noqa: PLC0415

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
