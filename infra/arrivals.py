"""How the input bucket tells ``route`` what has arrived: S3 events to a queue, with a dead-letter queue behind it."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from aws_cdk import Duration, RemovalPolicy, Stack
from aws_cdk import aws_logs as logs
from aws_cdk import aws_s3 as s3
from aws_cdk import aws_s3_notifications as s3_notifications
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from infra.allow import acknowledge
from infra.functions import ROUTE_TIMEOUT_SECONDS

if TYPE_CHECKING:
    from aws_cdk import CfnResource

RECEIVE_COUNT = 5
HANDLER_ID = "BucketNotificationsHandler050a0587b7544547bf325f094a3db834"
"""CDK's own singleton: the function that writes a bucket's notification configuration at deploy time."""


class Arrivals(Construct):
    """The arrivals queue and the dead-letter queue of the whole stack."""

    def __init__(self, scope: Construct, name: str) -> None:
        super().__init__(scope, name)
        self.dead_letters = sqs.Queue(
            self,
            "DeadLetters",
            encryption=sqs.QueueEncryption.SQS_MANAGED,
            enforce_ssl=True,
            retention_period=Duration.days(14),
        )
        self.queue = sqs.Queue(
            self,
            "Queue",
            encryption=sqs.QueueEncryption.SQS_MANAGED,
            enforce_ssl=True,
            # AWS asks for six times the function's timeout, so that a slow invocation's events do not come twice.
            visibility_timeout=Duration.seconds(6 * ROUTE_TIMEOUT_SECONDS),
            retention_period=Duration.days(14),
            dead_letter_queue=sqs.DeadLetterQueue(queue=self.dead_letters, max_receive_count=RECEIVE_COUNT),
        )

    def listen_to(self, bucket: s3.IBucket) -> None:
        """Send every created object of the bucket; a 4 GB object arrives as CompleteMultipartUpload."""
        bucket.add_event_notification(s3.EventType.OBJECT_CREATED, s3_notifications.SqsDestination(self.queue))
        handler = Stack.of(self).node.find_child(HANDLER_ID)
        group = logs.LogGroup(
            self, "NotifierLogs", retention=logs.RetentionDays.ONE_MONTH, removal_policy=RemovalPolicy.DESTROY
        )
        function = cast("CfnResource", handler.node.find_child("Resource"))
        function.add_property_override("LoggingConfig.LogGroup", group.log_group_name)
        policy = "arn:<AWS::Partition>:iam::aws:policy/service-role/AWSLambdaBasicExecutionRole"
        acknowledge(
            handler,
            f"AwsSolutions-IAM4[Policy::{policy}]",
            "CDK gives this policy to the function by which it writes a bucket's notifications at deploy time; it "
            "allows nothing but writing logs.",
        )
