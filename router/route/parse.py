"""SQS messages to the object versions that they announce. Pure."""

from __future__ import annotations

from dataclasses import dataclass
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


@dataclass(frozen=True, slots=True)
class AnnouncedVersion:
    """An object version as its event describes it; what the event lacks is None."""

    bucket: str
    key: str
    etag: str | None
    size: int | None
    """Bytes."""
    instant: datetime
    """Time of the event, aware."""
    version_id: str | None
    """``null``: the event says that the object was put while the bucket had no versions."""

    def version(self) -> ObjectVersion:
        """The arrival of a complete event. Raises ``ValueError`` without size or ETag."""
        if self.size is None or self.etag is None:
            raise ValueError("the event has no size or no ETag")
        return ObjectVersion.of(self.bucket, self.key, self.etag, self.size, self.instant, self.version_id)


def parse_events(message: SQSRecord) -> list[AnnouncedVersion]:
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
        return [_announced(record) for record in records if record.event_name.startswith("ObjectCreated:")]
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise InvalidInputError(
            f"message {message.message_id} is not a valid S3 event ({error!r}): "
            "only the input bucket may send to this queue"
        ) from error


def _announced(record: S3EventRecord) -> AnnouncedVersion:
    item = record.s3.get_object
    size = item.get("size")
    return AnnouncedVersion(
        record.s3.bucket.name,
        unquote_plus(item["key"], errors="strict"),
        item.get("eTag") or None,
        None if size is None else int(size),
        datetime.fromisoformat(record.event_time),
        item.get("versionId") or None,
    )
