"""SQS messages to the object versions that they announce, and when they are delivered again."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TypeVar
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
from router.services import Services, in_parallel
from router.telemetry import logger

T = TypeVar("T")

TEST_EVENT = "s3:TestEvent"
"""S3 sends it once when the notification is configured."""


@dataclass(frozen=True, slots=True)
class AnnouncedVersion:
    """An object version as its event describes it; what the event lacks is None."""

    bucket: str
    key: str
    etag: str | None
    size: int | None
    instant: datetime
    """Time of the event, in UTC."""
    version_id: str | None
    """``null``: the event says that the object was put while the bucket had no versions."""

    def version(self) -> ObjectVersion:
        """The arrival of a complete event. Raises ``ValueError`` without size or ETag."""
        if self.size is None or self.etag is None:
            raise ValueError("the event has no size or no ETag")
        return ObjectVersion.of(self.bucket, self.key, self.etag, self.size, self.instant, self.version_id)


def parse_events(message: SQSRecord) -> list[AnnouncedVersion]:
    """The object versions that a message announces; none for S3's test event and for removals.

    Raises ``InvalidInputError``: the message is not a valid S3 event.
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


def _announced(record: S3EventRecord) -> AnnouncedVersion:
    item = record.s3.get_object
    size = item.get("size")
    if size is not None and int(size) < 0:
        raise ValueError(f"the size is {size}")
    return AnnouncedVersion(
        record.s3.bucket.name,
        unquote_plus(item["key"], errors="strict"),
        _text(item.get("eTag")),
        None if size is None else int(size),
        datetime.fromisoformat(record.event_time).astimezone(UTC),
        _text(item.get("versionId")),
    )


def _text(value: object) -> str | None:
    if value and not isinstance(value, str):
        raise TypeError(f"{value!r} is not a text")
    return str(value) if value else None


class VersionLookup:
    """Completes the events of one invocation, by the versions of the key; a complete event costs no request.

    Where the bucket has versions, an event without a version must not become an arrival of its own: a listing gives the
    same object its version id, and the file would be converted twice.

    An event without a version, which is every event of a bucket without versions, costs one request per invocation.
    Once S3 has not answered it is not asked again: a thousand events would wait for its repetitions one after another.
    """

    def __init__(self, services: Services) -> None:
        self._services = services
        self._has_versions: bool | None = None
        self._fault: Exception | None = None

    def complete(self, announced: AnnouncedVersion) -> ObjectVersion:
        """The arrival that an event announces.

        Raises ``InvalidInputError``: the event has no size or no ETag, and no version of the key belongs to it;
        ``BotoCoreError``, ``ClientError``: S3 did not answer: the event has to be redelivered.
        """
        is_input = announced.bucket == self._services.resources.input_bucket
        is_whole = announced.size is not None and announced.etag is not None
        if is_whole and (announced.version_id is not None or not is_input or not self._bucket_has_versions()):
            return announced.version()
        found = self._find(announced) if is_input else None
        if found is not None:
            return found
        if is_whole:
            # Gone by now. The manifest that owns it reports that.
            return announced.version()
        raise InvalidInputError(
            f"the event of s3://{announced.bucket}/{announced.key} has no size or no ETag, and no version of the key "
            "is known to belong to it: the sweep finds the file if it is there; put it again if it was deleted by "
            "mistake"
        )

    def _bucket_has_versions(self) -> bool:
        """Whether versions were ever switched on; after that the bucket keeps the version ``null`` next to others."""
        if self._has_versions is None:
            bucket = self._services.resources.input_bucket
            answer = self._ask(lambda: self._services.s3.get_bucket_versioning(Bucket=bucket))
            self._has_versions = "Status" in answer
        return self._has_versions

    def _ask(self, request: Callable[[], T]) -> T:
        if self._fault is not None:
            raise self._fault
        try:
            return request()
        except (BotoCoreError, ClientError) as error:
            if can_pass(error):
                self._fault = error
            raise

    def _find(self, announced: AnnouncedVersion) -> ObjectVersion | None:
        """The version that the event names, or else the newest one with its ETag; None: there is none.

        Without version and ETag it would be a guess.
        """
        if announced.version_id is None and announced.etag is None:
            return None
        etag = None if announced.etag is None else announced.etag.strip('"')
        versions = self._ask(lambda: list(list_versions(self._services.s3, announced.bucket, announced.key)))
        matching = [
            item
            for item in versions
            if announced.version_id in (None, item["VersionId"]) and etag in (None, item["ETag"].strip('"'))
        ]
        if not matching:
            return None
        item = next((item for item in matching if item["VersionId"] == UNVERSIONED), matching[0])
        version = item["VersionId"]
        return ObjectVersion.of(announced.bucket, announced.key, item["ETag"], item["Size"], announced.instant, version)


PAUSES = (10, 60, 300)
"""Seconds after the first, the second, and each further delivery. Without them an event would wait as long as one whose
invocation has died (``infra/arrivals.py``)."""
MAX_ENTRIES = 10
"""Maximum entries of one request (Amazon SQS API Reference, ChangeMessageVisibilityBatch)."""


def receives(message: SQSRecord) -> int:
    """Number of times that the message was delivered, this time included."""
    return int(message.attributes.approximate_receive_count)


def pause_seconds(count: int) -> int:
    """Seconds until a message that was delivered ``count`` times is delivered again. Pure."""
    return PAUSES[min(count, len(PAUSES)) - 1]


def deliver_again(services: Services, messages: Sequence[SQSRecord]) -> None:
    """Let messages be delivered again after their pause; after an error, which is logged, the queue's timeout holds."""
    if services.sqs is None or not messages:
        return
    in_parallel(lambda batch: _change(services, batch), batches_of(messages, MAX_ENTRIES))


def _change(services: Services, messages: Sequence[SQSRecord]) -> None:
    assert services.sqs is not None
    entries = [
        {
            "Id": str(number),
            "ReceiptHandle": message.receipt_handle,
            "VisibilityTimeout": pause_seconds(receives(message)),
        }
        for number, message in enumerate(messages)
    ]
    try:
        answer = services.sqs.change_message_visibility_batch(QueueUrl=services.arrivals_queue, Entries=entries)  # type: ignore[arg-type]
    except (BotoCoreError, ClientError) as error:
        logger.warning("messages are delivered again later", messages=len(entries), error=str(error))
        return
    if refused := answer.get("Failed"):
        logger.warning("messages are delivered again later", messages=len(refused), error=refused[0].get("Message"))
