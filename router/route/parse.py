"""SQS messages to arrivals."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING
from urllib.parse import unquote_plus

from aws_lambda_powertools.utilities.data_classes import S3Event

from lake.errors import InvalidInputError
from lake.manifest import ObjectVersion

if TYPE_CHECKING:
    from aws_lambda_powertools.utilities.data_classes.s3_event import S3EventRecord
    from aws_lambda_powertools.utilities.data_classes.sqs_event import SQSRecord

TEST_EVENT = "s3:TestEvent"
"""S3 sends it once when the notification is configured."""


def parse_arrivals(message: SQSRecord) -> list[ObjectVersion]:
    """The object versions that a message announces; none for S3's test event and for removals.

    Raises
    ------
    InvalidInputError
        The message is not a valid S3 event.
    """
    try:
        body = message.json_body
        if body.get("Event") == TEST_EVENT:
            return []
        records = list(S3Event(body).records)
        return [_arrival(record) for record in records if record.event_name.startswith("ObjectCreated:")]
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise InvalidInputError(
            f"message {message.message_id} is not a valid S3 event ({error!r}): "
            "only the input bucket may send to this queue"
        ) from error


def _arrival(record: S3EventRecord) -> ObjectVersion:
    item = record.s3.get_object
    return ObjectVersion.of(
        record.s3.bucket.name,
        unquote_plus(item["key"], errors="strict"),
        item["eTag"],
        int(item.get("size") or 0),
        datetime.fromisoformat(record.event_time),
        item.get("versionId"),
    )
