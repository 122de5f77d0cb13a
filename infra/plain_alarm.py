"""One alarm: what raises it, and what its message says; and the topic by which messages reach people."""

from collections.abc import Sequence
from dataclasses import dataclass

from aws_cdk import Duration, Stack
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_cloudwatch_actions as cloudwatch_actions
from aws_cdk import aws_iam as iam
from aws_cdk import aws_sns as sns
from aws_cdk import aws_sns_subscriptions as subscriptions
from constructs import Construct

from lake.texts import with_options

RUNBOOK = "docs/runbook.md"
"""The page with an entry for each alarm, in the repository. A person finds it in the checkout that was deployed."""


@dataclass(frozen=True, slots=True)
class PlainAlarm:
    """An alarm that publishes to the topic by itself, whatever the others do."""

    name: str
    """The part before a hyphen is the heading of its entry in the runbook."""
    metric: cloudwatch.Metric | cloudwatch.MathExpression
    description: str
    threshold: float = 1
    datapoints: tuple[int, int] = (1, 1)
    """Number of bad periods that raise it, and of periods among which they are."""
    on_silence: bool = False
    """It is raised by values below the threshold and by missing data, instead of by values from the threshold on."""

    def create(self, scope: Construct, topic: sns.ITopic, stage: str) -> cloudwatch.Alarm:
        description = with_options(self.description, f" --stage {stage}")
        bad, periods = self.datapoints
        operators, missing = cloudwatch.ComparisonOperator, cloudwatch.TreatMissingData
        alarm = cloudwatch.Alarm(
            scope,
            self.name,
            metric=self.metric,
            threshold=self.threshold,
            evaluation_periods=periods,
            datapoints_to_alarm=bad if periods > 1 else None,
            comparison_operator=(
                operators.LESS_THAN_THRESHOLD if self.on_silence else operators.GREATER_THAN_OR_EQUAL_TO_THRESHOLD
            ),
            treat_missing_data=missing.BREACHING if self.on_silence else missing.NOT_BREACHING,
            alarm_description=f"{description} See {RUNBOOK}#{self.name.partition('-')[0].lower()}",
        )
        alarm.add_alarm_action(cloudwatch_actions.SnsAction(topic))
        return alarm


def total(metrics: Sequence[cloudwatch.IMetric], period: Duration) -> cloudwatch.MathExpression:
    """The sum of at most ten metrics, where a missing value counts as 0: one that comes after ``period`` is not seen.

    Ten is the limit of an alarm's expression (Amazon CloudWatch User Guide, "Limits that apply to alarms").
    """
    using = {f"m{number}": metric for number, metric in enumerate(metrics)}
    expression = " + ".join(f"FILL({name}, 0)" for name in using)
    return cloudwatch.MathExpression(expression=expression, using_metrics=using, period=period)


def add_alarm_topic(scope: Construct, email: str) -> sns.Topic:
    """The topic for alarms and failed executions.

    ``email`` is subscribed: SNS sends it one mail whose link confirms the subscription. "" if people subscribe later.
    """
    topic = sns.Topic(Construct(scope, "AlarmTopic"), "Topic", enforce_ssl=True)
    # The policy with the refusal of plain HTTP replaces the default one, which let CloudWatch publish.
    topic.add_to_resource_policy(
        iam.PolicyStatement(
            principals=[iam.ServicePrincipal("cloudwatch.amazonaws.com")],
            actions=["sns:Publish"],
            resources=[topic.topic_arn],
            conditions={"StringEquals": {"aws:SourceAccount": Stack.of(scope).account}},
        )
    )
    if email:
        topic.add_subscription(subscriptions.EmailSubscription(email))
    return topic
