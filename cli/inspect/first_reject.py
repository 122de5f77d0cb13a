"""The first rejected line of a file, as the quarantine holds it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from botocore.exceptions import ClientError

from cli.documents import FirstReject
from lake.faults import RIGHTS_CODES

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

MAX_OBJECTS = 8
"""Quarantine objects that are looked into."""
MAX_BYTES = 262_144
"""That are read of each."""
MAX_LINE_CHARACTERS = 200
"""Maximum length of a line that is shown."""


def read_first_reject(
    s3: S3Client, bucket: str, objects: Sequence[dict[str, Any]], source: dict[str, Any]
) -> FirstReject | None:
    """Offset, reason and beginning of the first rejected line of a source.

    None: it has none, none is among the first ``MAX_BYTES`` of the objects, or the caller may not read the quarantine.
    """
    if not sum(source["rejects"].values()):
        return None
    try:
        found = [
            record
            for item in objects[:MAX_OBJECTS]
            for record in _records(s3, bucket, item)
            if (record["source"], record["version"], record["kind"]) == (source["uri"], source["version"], "line")
        ]
    except ClientError as error:
        if error.response["Error"]["Code"] in RIGHTS_CODES:
            return None
        raise
    if not found:
        return None
    first = min(found, key=lambda record: int(record["offset"]))
    line = str(first.get("line", ""))[:MAX_LINE_CHARACTERS]
    return FirstReject(first["offset"], first["length"], first["reason"], line)


def _records(s3: S3Client, bucket: str, item: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The whole records at the beginning of an object; the last one that was read may be cut."""
    if not item["size"]:
        return
    try:
        body = s3.get_object(Bucket=bucket, Key=item["key"], Range=f"bytes=0-{MAX_BYTES - 1}")["Body"].read()
    except s3.exceptions.NoSuchKey:
        return
    for line in body[: body.rfind(b"\n") + 1].splitlines():
        yield json.loads(line)
