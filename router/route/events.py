"""Reads the object versions that SQS messages announce, and sets when messages are redelivered."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, NamedTuple
from urllib.parse import unquote_plus

from aws_lambda_powertools.utilities.data_classes import S3Event
from aws_lambda_powertools.utilities.data_classes.s3_event import S3EventRecord
from aws_lambda_powertools.utilities.data_classes.sqs_event import SQSRecord
from botocore.exceptions import BotoCoreError, ClientError

from lake.errors import InvalidInputError
from lake.faults import can_pass
from lake.layout import list_versions
from lake.ledger.table import batches_of
from lake.manifest import UNVERSIONED, ObjectVersion
from router.services import Services
from router.telemetry import logger

TEST_EVENT = "s3:TestEvent"
"""S3 sends it once when the notification is configured."""


class AnnouncedVersion(NamedTuple):
    """An object version as its event describes it."""

    file: ObjectVersion
    names_version: bool
    """True also for the name ``null``: the object was put while the bucket had no versions."""


def parse_events(message: SQSRecord) -> list[AnnouncedVersion]:
    """The object versions that a message announces; none for S3's test event and for removals.

    Raises ``InvalidInputError`` if the message is not a valid S3 event.
    """
    try:
        body = message.json_body
        if body.get("Event") == TEST_EVENT:
            return []
        records = list(S3Event(body).records)
        return [_announced(record) for record in records if record.event_name.startswith("ObjectCreated:")]
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError) as error:
        raise InvalidInputError(
            f"message {message.message_id} is not a valid S3 event ({error!r}): "
            "only the input bucket may send to this queue"
        ) from error


MAX_TEXT_BYTES = 1024
"""Limit of a key and of a version id (Amazon S3 User Guide, "Naming Amazon S3 objects", "How S3 Versioning works")."""
MAX_SIZE = 1 << 50
"""An upper bound of an object's size."""


def _announced(record: S3EventRecord) -> AnnouncedVersion:
    bucket, item = record.s3.bucket.name, record.s3.get_object
    size, etag, version = int(item["size"]), item["eTag"], item.get("versionId") or None
    key, instant = unquote_plus(item["key"], errors="strict"), datetime.fromisoformat(record.event_time).astimezone(UTC)
    # A text that is too long or has no UTF-8 form would fail the ledger's writes for all messages.
    longest = max(len(text.encode()) for text in (bucket, key, etag, version or ""))
    if not 0 <= size <= MAX_SIZE or not key or not etag or longest > MAX_TEXT_BYTES:
        raise ValueError(f"size {size}, ETag {etag!r}, version {version!r}")
    return AnnouncedVersion(ObjectVersion.of(bucket, key, etag, size, instant, version), version is not None)


class VersionLookup:
    """Completes the events of one invocation that name no version; other events cost no request.

    If the bucket has versions, an event without a version must not become an arrival of its own: a listing would find
    the same object with its version id, and the file would be converted twice. In a bucket without versions no event
    names one, and the lookup costs one request per invocation. After S3 failed to answer once, it is not asked again,
    because a thousand events would each wait for its retries.
    """

    def __init__(self, services: Services) -> None:
        self._services = services
        self._has_versions: bool | None = None
        self._fault: Exception | None = None

    def complete(self, announced: AnnouncedVersion) -> ObjectVersion:
        """The arrival of an event: among the versions with its ETag, the one from before versioning, else the newest.

        Raises ``BotoCoreError`` or ``ClientError`` if S3 did not answer: the event must be redelivered.
        """
        file, s3, own = announced.file, self._services.s3, self._services.resources.input_bucket
        if announced.names_version or file.bucket != own:
            return file
        if self._fault is not None:
            raise self._fault
        try:
            if self._has_versions is None:
                # After versioning was switched on, the bucket keeps the version `null` next to others.
                self._has_versions = "Status" in s3.get_bucket_versioning(Bucket=own)
            versions = list_versions(s3, own, file.key) if self._has_versions else ()
            matching = [item["VersionId"] for item in versions if item["ETag"].strip('"') == file.etag]
        except (BotoCoreError, ClientError) as error:
            if can_pass(error):
                self._fault = error
            raise
        # Without a match the object is gone by now; the manifest that owns it reports that.
        version = UNVERSIONED if UNVERSIONED in matching else next(iter(matching), UNVERSIONED)
        return replace(file, version_id=None if version == UNVERSIONED else version)


PAUSES = (10, 60, 300)
"""Seconds until redelivery after the first, the second, and each further delivery. Without them an event would wait as
long as after an invocation that died (``infra/arrivals.py``)."""
MAX_ENTRIES = 10
"""Maximum entries of one request (Amazon SQS API Reference, ChangeMessageVisibilityBatch)."""


def receives(message: SQSRecord) -> int:
    """Number of deliveries of the message, including this one."""
    return int(message.attributes.approximate_receive_count)


def pause_seconds(count: int) -> int:
    """Seconds until a message that was delivered ``count`` times is delivered again. Pure."""
    return PAUSES[min(count, len(PAUSES)) - 1]


def deliver_again(services: Services, messages: Sequence[SQSRecord]) -> None:
    """Let messages be redelivered after their pause. After an error, which is logged, the queue's timeout applies."""
    if services.sqs is None:
        return
    for some in batches_of(messages, MAX_ENTRIES):
        entries: Any = [
            {
                "Id": str(number),
                "ReceiptHandle": item.receipt_handle,
                "VisibilityTimeout": pause_seconds(receives(item)),
            }
            for number, item in enumerate(some)
        ]
        try:
            services.sqs.change_message_visibility_batch(QueueUrl=services.arrivals_queue, Entries=entries)
        except (BotoCoreError, ClientError) as error:
            logger.warning("messages are redelivered later", messages=len(messages), error=str(error))
            return
