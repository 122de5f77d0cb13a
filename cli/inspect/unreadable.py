"""The files of a DONE manifest that could not be read, by its result document."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from botocore.exceptions import ClientError

from cli.deployed_stack import DeployedStack
from cli.inspect.trace import trace_arrival
from lake.documents import get_document
from lake.layout import result_key
from lake.ledger import ManifestRow, State
from lake.manifest import ObjectVersion
from lake.s3_uri import parse_s3_uri
from lake.time import iso_utc

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client


def read_unreadable(stack: DeployedStack, row: ManifestRow) -> Iterator[dict[str, Any]]:
    """The sources of the result document that have failed.

    Raises ``InvalidDocumentError`` where one is gone, and botocore's errors.
    """
    if row.published is None:
        return
    result = _read(stack, result_key(row.id, row.published.generation))
    yield from (source for source in result["sources"] if source["failed"])


@dataclass(frozen=True, slots=True)
class LaterPut:
    """What was put under the key of an unreadable file since."""

    put_again_at: str | None = None
    """ISO 8601, UTC: the same bytes are there, so a reprocess reads them; None: they are not."""
    manifest: str | None = None
    """The manifest that has converted a later version; None: there is none yet."""


def find_later_put(stack: DeployedStack, file: Mapping[str, Any]) -> LaterPut:
    """What was put under the key of a file from ``read_unreadable`` since.

    Raises ``InvalidDocumentError`` where a document is gone, and botocore's errors.
    """
    name = parse_s3_uri(file["uri"])
    versions = stack.ledger.arrivals.versions(name.bucket, name.key)
    own = next((row.file for row in versions if row.file.version == file["version"]), None)
    if own is None:
        return LaterPut()
    if (put_again_at := find_put_again(stack.s3, own)) is not None:
        return LaterPut(put_again_at)
    for row in versions:
        if row.file.arrived_at > own.arrived_at:
            trace = trace_arrival(stack.s3, stack.ledger, stack.resources, row)
            if trace.state == State.DONE and trace.source is not None and not trace.source["failed"]:
                return LaterPut(manifest=trace.manifests[-1].id)
    return LaterPut()


def find_put_again(s3: S3Client, file: ObjectVersion) -> str | None:
    """When the bytes of a file without a version were put again: the same arrival, which its manifest can read now.

    ISO 8601, UTC; None: they are not there, were not put again, or the caller may not ask.
    """
    if file.version_id is not None:
        return None
    try:
        modified = s3.head_object(Bucket=file.bucket, Key=file.key, IfMatch=f'"{file.etag}"')["LastModified"]
    except ClientError:
        return None
    return iso_utc(modified) if modified > datetime.fromisoformat(file.arrived_at) else None


def _read(stack: DeployedStack, key: str) -> Any:  # noqa: ANN401
    return json.loads(get_document(stack.s3, stack.resources.control_bucket, key))
