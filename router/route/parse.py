"""SQS messages to arrivals."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING
from urllib.parse import unquote_plus

from aws_lambda_powertools.utilities.data_classes import S3Event

from lake.errors import InvalidInputError
from lake.manifest import ObjectVersion
from lake.time import iso_utc

if TYPE_CHECKING:
    from aws_lambda_powertools.utilities.data_classes.s3_event import S3EventRecord
    from aws_lambda_powertools.utilities.data_classes.sqs_event import SQSRecord

TEST_EVENT = "s3:TestEvent"
UNVERSIONED = "null"
"""Version id that S3 gives to objects written while the bucket has no versions."""


def arrivals_of(message: SQSRecord) -> list[ObjectVersion]:
    """The object versions that a message announces; none for S3's test event and for removals.

    Raises
    ------
    InvalidInputError
        When the message is no S3 event.
    """
    try:
        body = message.json_body
        if body.get("Event") == TEST_EVENT:
            return []
        records = list(S3Event(body).records)
        return [_arrival(record) for record in records if record.event_name.startswith("ObjectCreated:")]
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise InvalidInputError(
            f"message {message.message_id} is no S3 event ({error!r}): only the input bucket may send to this queue"
        ) from error


def object_version(
    bucket: str, key: str, etag: str, size: int, instant: datetime, version_id: str | None
) -> ObjectVersion:
    """An arrival with one spelling of each field, whether an event or a listing told of it."""
    pinned = None if version_id in (None, "", UNVERSIONED) else version_id
    return ObjectVersion(bucket, key, etag.strip('"'), size, iso_utc(instant), pinned)


def _arrival(record: S3EventRecord) -> ObjectVersion:
    item = record.s3.get_object
    return object_version(
        record.s3.bucket.name,
        unquote_plus(item["key"], errors="strict"),
        item["eTag"],
        int(item.get("size") or 0),
        datetime.fromisoformat(record.event_time),
        item.get("versionId"),
    )
