"""The topic by which alarms and failed executions reach people."""

from __future__ import annotations

from aws_cdk import Stack
from aws_cdk import aws_iam as iam
from aws_cdk import aws_sns as sns
from aws_cdk import aws_sns_subscriptions as subscriptions
from constructs import Construct


class AlarmTopic(Construct):
    """The topic for alarms and failed executions.

    ``email`` is subscribed: SNS sends it one mail whose link confirms the subscription. "" if people subscribe later.
    """

    def __init__(self, scope: Construct, name: str, email: str) -> None:
        super().__init__(scope, name)
        self.topic = sns.Topic(self, "Topic", enforce_ssl=True)
        # The policy with the refusal of plain HTTP replaces the default one, which let CloudWatch publish.
        self.topic.add_to_resource_policy(
            iam.PolicyStatement(
                principals=[iam.ServicePrincipal("cloudwatch.amazonaws.com")],
                actions=["sns:Publish"],
                resources=[self.topic.topic_arn],
                conditions={"StringEquals": {"aws:SourceAccount": Stack.of(self).account}},
            )
        )
        if email:
            self.topic.add_subscription(subscriptions.EmailSubscription(email))
