"""When events that were not acknowledged are delivered again: soon at first, then less often."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from botocore.exceptions import BotoCoreError, ClientError

from router.services import PARALLEL_REQUESTS, Services
from router.telemetry import logger

if TYPE_CHECKING:
    from aws_lambda_powertools.utilities.data_classes.sqs_event import SQSRecord

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
    with ThreadPoolExecutor(PARALLEL_REQUESTS) as pool:
        batches = [messages[start : start + MAX_ENTRIES] for start in range(0, len(messages), MAX_ENTRIES)]
        list(pool.map(lambda batch: _change(services, batch), batches))


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
