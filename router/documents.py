"""JSON documents of the control bucket."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from lake.documents import encode_document, get_document, put_document
from lake.errors import InvalidDocumentError, InvalidInputError

if TYPE_CHECKING:
    from router.services import Services


def write_document(services: Services, key: str, body: object) -> str:
    """Put a document into the control bucket; returns its URI."""
    bucket = services.resources.control_bucket
    put_document(services.s3, bucket, key, encode_document(body))
    return f"s3://{bucket}/{key}"


def read_document(services: Services, key: str) -> Any:  # noqa: ANN401
    """Get a document of the control bucket; raises ``InvalidInputError`` when it does not exist."""
    bucket = services.resources.control_bucket
    try:
        body = get_document(services.s3, bucket, key)
    except InvalidDocumentError as error:
        raise InvalidInputError(f"s3://{bucket}/{key} does not exist: plan the execution first") from error
    return json.loads(body)
