"""The self-test of the alarms: a message to their topic, which has to come back through a subscription of the stage."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cache
from typing import TYPE_CHECKING, Any

import boto3

from lake.errors import InvalidInputError
from router.services import CLIENT_CONFIG
from router.telemetry import logger

if TYPE_CHECKING:
    from router.services import Services
    from router.sweep.repair import Repair

REQUEST = "selfTest"
"""The field of an event that asks for a test; the schedule sends it."""
TEXT = (
    "Self-test: alarms of the stage {stage} reach you. No action is needed. This message comes at the times of the "
    "setting alarms.self_test. If it stays out, run 'hybrid-router doctor --stage {stage}'."
)
ARRIVAL_GRACE = timedelta(minutes=10)
"""A message that has not come back after it is lost. SNS needs a second, and tries again for longer than any grace
period if it is refused: then alarms do not arrive either."""
WAIT_SECONDS = 1
"""SQS asks all of its servers when a request may wait; without that, an answer can lack messages that are there."""
MAX_MESSAGES = 10
"""Maximum number of messages that SQS gives at once (Amazon SQS API Reference, ReceiveMessage)."""


@dataclass(frozen=True, slots=True)
class SelfTestChannel:
    """The topic of the alarms, and the queue that subscribes to it for the tests."""

    topic: str
    """ARN."""
    queue: str
    """URL. It gets all messages of the topic, so those of alarms as well."""
    sns: Any
    sqs: Any


@cache
def container_channel() -> SelfTestChannel | None:
    """The channel of the Lambda's environment, connected at the first call only; None: the stage has no self-test."""
    topic, queue = os.environ.get("ALARM_TOPIC"), os.environ.get("SELF_TEST_QUEUE")
    if not topic or not queue:
        return None
    clients = (boto3.client(name, config=CLIENT_CONFIG) for name in ("sns", "sqs"))
    return SelfTestChannel(topic, queue, *clients)


def send_self_test(services: Services, channel: SelfTestChannel | None) -> dict[str, str]:
    """Send the message; returns its id as ``{"message": ...}``. The next sweeps look whether it comes back.

    Raises
    ------
    InvalidInputError
        The stage sends no self-test.
    BotoCoreError, ClientError
        The topic does not take it. The test counts as begun, so that sweeps tell of it.
    """
    if channel is None:
        raise InvalidInputError("the stage has no self-test of its alarms: set alarms.self_test, and deploy")
    services.ledger.self_tests.begin(services.clock())
    text = TEXT.format(stage=services.settings.stage)
    message = str(channel.sns.publish(TopicArn=channel.topic, Message=text)["MessageId"])
    services.ledger.self_tests.record_sent(message)
    logger.info("self-test sent", message_id=message)
    return {"message": message}


def is_self_test_lost(repair: Repair, channel: SelfTestChannel) -> bool:
    """Whether the last test has not come back in time. While one is under way, its message is looked for."""
    services = repair.services
    row = services.ledger.self_tests.get()
    if row.sent_at is None or row.arrived_at is not None:
        return False
    if row.message is not None and _find(repair, channel, row.message):
        return False
    lost = services.clock() - datetime.fromisoformat(row.sent_at) > ARRIVAL_GRACE
    if lost:
        logger.error("the self-test has not come back from the topic of the alarms", sent_at=row.sent_at)
    return lost


def _find(repair: Repair, channel: SelfTestChannel, wanted: str) -> bool:
    """Read the queue until it has no more messages, or the message with this id is found, and delete what was read.

    Nobody else reads the queue. The arrival is recorded before the message is deleted: any step can be repeated.
    """
    tests = repair.services.ledger.self_tests
    while not repair.expired:
        answer = channel.sqs.receive_message(
            QueueUrl=channel.queue, MaxNumberOfMessages=MAX_MESSAGES, WaitTimeSeconds=WAIT_SECONDS
        )
        messages = answer.get("Messages", [])
        found = wanted in {json.loads(item["Body"])["MessageId"] for item in messages}
        if found:
            tests.record_arrival(wanted, repair.services.clock())
        for item in messages:
            channel.sqs.delete_message(QueueUrl=channel.queue, ReceiptHandle=item["ReceiptHandle"])
        if found or not messages:
            return found
    return False
