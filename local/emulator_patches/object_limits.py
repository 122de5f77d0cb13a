"""S3: lengths of keys and metadata, parts of an upload, and how many objects a request may name."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any
from xml.etree.ElementTree import Element, ParseError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from local.emulator_patches import EmulatorValue

MAX_KEY_BYTES = 1_024
MAX_METADATA_BYTES = 2_048
"""Bytes of UTF-8 of a key, and of all names and values of an object's own metadata.

Source: https://docs.aws.amazon.com/AmazonS3/latest/userguide/object-keys.html and UsingMetadata.html
"""

MIN_PART_BYTES = 5 * 1024 * 1024
"""Bytes of each part but the last; source: https://docs.aws.amazon.com/AmazonS3/latest/userguide/qfacts.html"""

MAX_PAGE_KEYS = 1_000
"""Keys of a page of a listing, and objects of DeleteObjects; sources: their API references."""

_METADATA = "x-amz-meta-"


def patch() -> None:
    """Apply the patch of this file."""
    from ministack.services import s3  # type: ignore[import-untyped]  # noqa: PLC0415

    original = s3._dispatch

    def dispatch(
        method: str, bucket: str, key: str, headers: dict[str, str], body: bytes, query_params: dict[str, Any]
    ) -> EmulatorValue:
        refusal = (
            _wrong_key_or_header(method, key, headers)
            or _wrong_parts(s3, method, body, query_params)
            or _too_many_objects(s3, method, key, body, query_params)
        )
        if refusal is not None:
            return s3._error(*refusal, f"/{bucket}/{key}" if key else f"/{bucket}")
        if "max-keys" in query_params:
            asked = int(s3._qp(query_params, "max-keys", str(MAX_PAGE_KEYS)))
            query_params = {**query_params, "max-keys": [str(min(asked, MAX_PAGE_KEYS))]}
        return original(method, bucket, key, headers, body, query_params)

    s3._dispatch = dispatch


def _wrong_key_or_header(method: str, key: str, headers: Mapping[str, str]) -> tuple[str, str, int] | None:
    if len(key.encode()) > MAX_KEY_BYTES:
        return "KeyTooLongError", "Your key is too long", 400
    metadata = {name.removeprefix(_METADATA): value for name, value in headers.items() if name.startswith(_METADATA)}
    own = sum(len(name) + len(value.encode()) for name, value in metadata.items())
    if own > MAX_METADATA_BYTES:
        return "MetadataTooLarge", "Your metadata headers exceed the maximum allowed metadata size", 400
    if method in ("PUT", "POST") and headers.get("if-none-match", "*") != "*":
        return "NotImplemented", "A header you provided implies functionality that is not implemented", 501
    return None


def _wrong_parts(
    s3: EmulatorValue, method: str, body: bytes, query_params: Mapping[str, Any]
) -> tuple[str, str, int] | None:
    """CompleteMultipartUpload of an upload that is open: parts in ascending order, none but the last too small."""
    upload = s3._multipart_uploads.get(s3._qp(query_params, "uploadId")) if method == "POST" else None
    if upload is None:
        return None
    numbers = [int(found.text or "0") for found in _elements(s3, body, "PartNumber")]
    if not numbers:
        return "MalformedXML", "The XML you provided was not well-formed", 400
    if any(number >= following for number, following in pairwise(numbers)):
        return "InvalidPartOrder", "The list of parts was not in ascending order.", 400
    sizes = [len(upload["parts"][number]["body"]) for number in numbers[:-1] if number in upload["parts"]]
    if any(size < MIN_PART_BYTES for size in sizes):
        return "EntityTooSmall", "Your proposed upload is smaller than the minimum allowed size", 400
    return None


def _too_many_objects(
    s3: EmulatorValue, method: str, key: str, body: bytes, query_params: Mapping[str, Any]
) -> tuple[str, str, int] | None:
    if method == "POST" and not key and "delete" in query_params and len(_elements(s3, body, "Object")) > MAX_PAGE_KEYS:
        return "MalformedXML", "The XML you provided was not well-formed or did not validate", 400
    return None


def _elements(s3: EmulatorValue, body: bytes, name: str) -> list[Element]:
    """Elements of that name in any namespace; none if the body is not XML, which the emulator refuses itself."""
    try:
        found: list[Element] = s3.fromstring(body).findall(f".//{{*}}{name}")
    except ParseError:
        return []
    return found
