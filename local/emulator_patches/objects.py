"""S3 reads of a version honour ``Range``; the emulator would answer with the whole object."""

from __future__ import annotations

from typing import Any


def patch() -> None:
    """Install the patch."""
    from ministack.services import s3  # type: ignore[import-untyped]  # noqa: PLC0415

    original = s3._get_object

    def get_object(
        bucket_name: str, key: str, headers: dict[str, str], query_params: dict[str, Any] | None = None
    ) -> tuple[int, dict[str, str], bytes]:
        status, answer, body = original(bucket_name, key, headers, query_params)
        wanted = headers.get("range", "")
        if status != 200 or not wanted or not (query_params or {}).get("versionId"):
            return status, answer, body
        parsed = s3._parse_range(wanted, len(body))
        if parsed is None:
            error = s3._xml_body(s3._range_error_xml(bucket_name, key))
            return 416, {"Content-Type": "application/xml", "Content-Range": f"bytes */{len(body)}"}, error
        first, last = parsed
        part = body[first : last + 1]
        span = {"Content-Length": str(len(part)), "Content-Range": f"bytes {first}-{last}/{len(body)}"}
        return 206, {**answer, **span}, part

    s3._get_object = get_object
