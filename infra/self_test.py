"""The queue by which the self-test of the alarms comes back, and the rights of the function that sends and finds it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aws_cdk import Duration
from aws_cdk import aws_sns_subscriptions as subscriptions
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from infra.allow import acknowledge_finding, allow

if TYPE_CHECKING:
    from aws_cdk import aws_sns as sns

    from infra.functions import RouterFunction

RETENTION = Duration.days(1)
"""How long the queue keeps what the topic sends: much longer than the interval between two sweeps."""
NO_DEAD_LETTERS = "Messages are read while a self-test is under way, and expire else: none of them is ever left over."


class SelfTest(Construct):
    """A subscription of the stage itself to the topic of its alarms; ``sweep`` sends the test and looks for it here."""

    def __init__(self, scope: Construct, name: str, topic: sns.ITopic, sweep: RouterFunction) -> None:
        super().__init__(scope, name)
        self.queue = sqs.Queue(
            self,
            "Queue",
            encryption=sqs.QueueEncryption.SQS_MANAGED,
            enforce_ssl=True,
            retention_period=RETENTION,
        )
        acknowledge_finding(self.queue, "AwsSolutions-SQS3", NO_DEAD_LETTERS)
        topic.add_subscription(subscriptions.SqsSubscription(self.queue))
        allow(sweep.role, ("sns:Publish",), [topic.topic_arn])
        allow(sweep.role, ("sqs:ReceiveMessage", "sqs:DeleteMessage"), [self.queue.queue_arn])
        sweep.function.add_environment("ALARM_TOPIC", topic.topic_arn)
        sweep.function.add_environment("SELF_TEST_QUEUE", self.queue.queue_url)
