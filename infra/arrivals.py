"""The queue that carries the input bucket's S3 events to ``route``, and the stack's dead-letter queue."""

from functools import partial
from typing import cast

from aws_cdk import CfnResource, Duration, Stack
from aws_cdk import aws_iam as iam
from aws_cdk import aws_s3 as s3
from aws_cdk import aws_s3_notifications as s3_notifications
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from infra.allow import acknowledge_finding, allow
from infra.functions import ROUTE_TIMEOUT_SECONDS, RouterFunction
from infra.log_groups import add_log_group
from infra.quotas import MAX_ROUTE_CONCURRENCY
from lake.resource_names import ARRIVALS_QUEUE
from lake.settings.routing import MAX_ARRIVALS_PER_INVOCATION

MAX_RECEIVES = 20
"""Deliveries of one event to ``route`` before it goes to the dead-letter queue: an outage of an hour takes 15 of them,
by the pauses of ``router/route/events.py`` and by ``INVISIBLE_TIMEOUTS``."""
INVISIBLE_TIMEOUTS = 2
"""Timeouts of ``route`` after which the events of a dead invocation are redelivered. AWS recommends six, so that events
that a throttled Lambda holds back are not delivered twice
(https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-configure.html): ``route`` is idempotent, and an urgent file
would wait for twelve minutes."""
POLL_QUEUE = ("sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:GetQueueAttributes")
"""AWS Lambda Developer Guide, "Using Lambda with Amazon SQS"."""
NOTIFICATIONS_HANDLER_ID = "BucketNotificationsHandler050a0587b7544547bf325f094a3db834"
"""CDK's singleton: the function that writes a bucket's notification configuration at deploy time."""


class ArrivalQueues(Construct):
    """The queue of S3 events, and the dead-letter queue for events and schedules. Both keep messages for 14 days."""

    def __init__(self, scope: Construct, name: str, window_seconds: int) -> None:
        super().__init__(scope, name)
        self._window_seconds = window_seconds
        create = partial(
            sqs.Queue,
            self,
            encryption=sqs.QueueEncryption.SQS_MANAGED,
            enforce_ssl=True,
            retention_period=Duration.days(14),
        )
        self.dead_letters = create("DeadLetters")
        self.queue = create(
            "Queue",
            # Events are invisible while Lambda collects a batch of them, too.
            visibility_timeout=Duration.seconds(INVISIBLE_TIMEOUTS * ROUTE_TIMEOUT_SECONDS + window_seconds),
            dead_letter_queue=sqs.DeadLetterQueue(queue=self.dead_letters, max_receive_count=MAX_RECEIVES),
        )

    def deliver_to(self, route: RouterFunction) -> None:
        """Invoke ``route`` with the messages of the window; ``route`` decides when failed ones are redelivered.

        CDK's own grant has one action more than Lambda needs.
        """
        allow(route.role, (*POLL_QUEUE, "sqs:ChangeMessageVisibility"), [self.queue.queue_arn])
        route.function.add_environment(ARRIVALS_QUEUE, self.queue.queue_url)
        route.function.add_event_source_mapping(
            "Arrivals",
            event_source_arn=self.queue.queue_arn,
            batch_size=MAX_ARRIVALS_PER_INVOCATION,
            max_batching_window=Duration.seconds(self._window_seconds),
            max_concurrency=MAX_ROUTE_CONCURRENCY,
            report_batch_item_failures=True,
        )

    def listen_to(self, bucket: s3.IBucket) -> None:
        """Send an event for every object that is created in ``bucket``. Call it once: CDK has one handler per stack.

        All kinds of ObjectCreated events are sent: an object of 4 GB arrives as CompleteMultipartUpload, not as Put.
        """
        self.queue.add_to_resource_policy(
            iam.PolicyStatement(
                principals=[iam.ServicePrincipal("s3.amazonaws.com")],
                actions=["sqs:SendMessage"],
                resources=[self.queue.queue_arn],
                conditions={
                    "ArnLike": {"aws:SourceArn": bucket.bucket_arn},
                    "StringEquals": {"aws:SourceAccount": Stack.of(self).account},
                },
            )
        )
        # The queue is imported by its ARN, so that CDK adds no statement of its own: CDK's statement checks only the
        # bucket's ARN, which has no account, and another account can recreate a deleted bucket (IAM User Guide, "The
        # confused deputy problem").
        queue = sqs.Queue.from_queue_arn(self, "Destination", self.queue.queue_arn)
        bucket.add_event_notification(s3.EventType.OBJECT_CREATED, s3_notifications.SqsDestination(queue))
        # S3 sends a test message when the notification is configured, so the queue's policy must exist before.
        bucket.node.find_child("Notifications").node.add_dependency(self.queue)
        handler = Stack.of(self).node.find_child(NOTIFICATIONS_HANDLER_ID)
        group = add_log_group(self, "NotifierLogs")
        function = cast("CfnResource", handler.node.find_child("Resource"))
        function.add_property_override("LoggingConfig.LogGroup", group.log_group_name)
        policy = "arn:<AWS::Partition>:iam::aws:policy/service-role/AWSLambdaBasicExecutionRole"
        acknowledge_finding(
            handler,
            f"AwsSolutions-IAM4[Policy::{policy}]",
            "CDK attaches this policy to the function that writes a bucket's notifications at deploy time; it only "
            "allows writing logs.",
        )
