"""The self-test of the alarms: its message has to come back from their topic, and who waits in vain is told."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import count
from typing import TYPE_CHECKING, Any

import pytest
from botocore.exceptions import ClientError

from lake.errors import InvalidInputError
from router.sweep.handler import sweep
from router.sweep.self_test import ARRIVAL_GRACE, SelfTestChannel, container_channel, send_self_test
from router.telemetry import Metric, metrics

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.unit.router.conftest import Deployment

DENIED = ClientError({"Error": {"Code": "AuthorizationError", "Message": "no"}}, "Publish")


@dataclass
class Topic:
    """A topic, and the queue that subscribes to it: as clients of SNS and SQS."""

    works: bool = True
    """Whether what is published comes to the queue."""
    refuses: bool = False
    published: list[str] = field(default_factory=list)
    queue: list[dict[str, Any]] = field(default_factory=list)
    receives: int = 0
    numbers: Iterator[int] = field(default_factory=count)

    def publish(self, TopicArn: str, Message: str) -> dict[str, str]:  # noqa: N803
        assert TopicArn == "topic"
        if self.refuses:
            raise DENIED
        self.published.append(Message)
        return {"MessageId": self.deliver() if self.works else "lost"}

    def deliver(self) -> str:
        """A message of the topic comes to the queue; returns its id."""
        message = f"m{next(self.numbers)}"
        self.queue.append({"ReceiptHandle": message, "Body": json.dumps({"MessageId": message, "Message": "text"})})
        return message

    def receive_message(self, QueueUrl: str, MaxNumberOfMessages: int, **_: int) -> dict[str, Any]:  # noqa: N803
        assert QueueUrl == "queue"
        self.receives += 1
        return {"Messages": self.queue[:MaxNumberOfMessages]} if self.queue else {}

    def delete_message(self, QueueUrl: str, ReceiptHandle: str) -> None:  # noqa: N803
        assert QueueUrl == "queue"
        self.queue = [item for item in self.queue if item["ReceiptHandle"] != ReceiptHandle]


def channel(topic: Topic) -> SelfTestChannel:
    return SelfTestChannel("topic", "queue", topic, topic)


def lost(deployment: Deployment, topic: Topic) -> float:
    """What a sweep tells the alarm."""
    metrics.clear_metrics()
    sweep(deployment.services, channel(topic))
    (value,) = metrics.metric_set[Metric.SELF_TEST_LOST]["Value"]
    return float(value)


def test_a_message_that_comes_back_is_recorded(deployment: Deployment) -> None:
    # Given messages of alarms, more than SQS gives at once
    topic = Topic()
    for _ in range(25):
        topic.deliver()
    # When the test is sent
    answer = send_self_test(deployment.services, channel(topic))
    # Then its text says what it is, and that there is nothing to do
    (text,) = topic.published
    assert text.startswith(f"Self-test: alarms of the stage {deployment.services.settings.stage} reach you. No action")
    # When the next sweep looks
    deployment.wait(timedelta(minutes=1))
    assert lost(deployment, topic) == 0
    # Then the row has both times, and the queue is empty
    row = deployment.ledger.self_tests.get()
    assert (row.message, row.arrived_at is not None, topic.queue) == (answer["message"], True, [])


def test_after_its_arrival_nothing_is_asked(deployment: Deployment) -> None:
    # Given
    topic = Topic()
    send_self_test(deployment.services, channel(topic))
    lost(deployment, topic)
    # When a month passes
    asked = topic.receives
    deployment.wait(timedelta(days=31))
    # Then
    assert (lost(deployment, topic), topic.receives) == (0, asked)


def test_before_the_first_one_nothing_is_lost(deployment: Deployment) -> None:
    topic = Topic()
    assert (lost(deployment, topic), topic.receives) == (0, 0)


def test_a_message_that_does_not_come_back_is_told_until_one_does(deployment: Deployment) -> None:
    # Given a topic whose messages go nowhere
    topic = Topic(works=False)
    send_self_test(deployment.services, channel(topic))
    # Then it is told after its grace period, and by each sweep
    deployment.wait(ARRIVAL_GRACE)
    assert lost(deployment, topic) == 0
    deployment.wait(timedelta(seconds=1))
    assert [lost(deployment, topic) for _ in range(2)] == [1, 1]
    # When the next test comes back
    topic.works = True
    send_self_test(deployment.services, channel(topic))
    # Then
    assert lost(deployment, topic) == 0


def test_another_message_is_not_the_test(deployment: Deployment) -> None:
    topic = Topic(works=False)
    send_self_test(deployment.services, channel(topic))
    topic.deliver()
    deployment.wait(2 * ARRIVAL_GRACE)
    assert (lost(deployment, topic), topic.queue) == (1, [])


def test_a_topic_that_takes_no_message_is_told_too(deployment: Deployment) -> None:
    # Given an earlier test that came back
    topic = Topic()
    send_self_test(deployment.services, channel(topic))
    lost(deployment, topic)
    # When the topic refuses the next one
    topic.refuses = True
    with pytest.raises(ClientError):
        send_self_test(deployment.services, channel(topic))
    # Then
    deployment.wait(2 * ARRIVAL_GRACE)
    assert lost(deployment, topic) == 1


def test_a_dry_run_looks_at_no_message(deployment: Deployment) -> None:
    topic = Topic()
    send_self_test(deployment.services, channel(topic))
    metrics.clear_metrics()
    sweep(deployment.services, channel(topic), dry_run=True)
    assert (topic.receives, len(topic.queue), metrics.metric_set) == (0, 1, {})


def test_an_arrival_of_an_earlier_test_is_not_that_of_the_last(deployment: Deployment) -> None:
    tests = deployment.ledger.self_tests
    tests.begin(deployment.now)
    tests.record_sent("second")
    assert not tests.record_arrival("first", deployment.now)
    assert tests.get().arrived_at is None
    assert tests.record_arrival("second", deployment.now)


def test_a_stage_without_a_self_test_refuses_it(deployment: Deployment, monkeypatch: pytest.MonkeyPatch) -> None:
    # Given a stage without topic and queue
    for name in ("ALARM_TOPIC", "SELF_TEST_QUEUE"):
        monkeypatch.delenv(name, raising=False)
    container_channel.cache_clear()
    # Then
    with pytest.raises(InvalidInputError, match=r"set alarms\.self_test"):
        send_self_test(deployment.services, container_channel())
    metrics.clear_metrics()
    sweep(deployment.services)
    assert Metric.SELF_TEST_LOST not in metrics.metric_set
