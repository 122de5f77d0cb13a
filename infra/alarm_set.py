"""Makes the alarms of a stage, each with its way to the topic."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_cloudwatch_actions as cloudwatch_actions

if TYPE_CHECKING:
    from aws_cdk import aws_sns as sns
    from constructs import Construct

RUNBOOK = "docs/runbook.md"
"""The page with an entry for each alarm, in the repository. A person finds it in the checkout that was deployed."""


class AlarmSet:
    """The alarms of a stage; they belong to ``scope``."""

    def __init__(self, scope: Construct, topic: sns.ITopic) -> None:
        self._scope = scope
        self._action = cloudwatch_actions.SnsAction(topic)
        self._alarms: dict[str, cloudwatch.Alarm] = {}

    @property
    def all(self) -> list[cloudwatch.Alarm]:
        """In the order in which they were added."""
        return list(self._alarms.values())

    def add(
        self,
        name: str,
        metric: cloudwatch.IMetric,
        threshold: float,
        description: str,
        datapoints: tuple[int, int] = (1, 1),
    ) -> None:
        """Add an alarm. ``datapoints``: number of bad periods that raise it, and of periods among which they are.

        The part of the name before a hyphen is the heading of its entry in the runbook.
        """
        bad, periods = datapoints
        alarm = cloudwatch.Alarm(
            self._scope,
            name,
            metric=metric,
            threshold=threshold,
            evaluation_periods=periods,
            datapoints_to_alarm=bad if periods > 1 else None,
            comparison_operator=cloudwatch.ComparisonOperator.GREATER_THAN_OR_EQUAL_TO_THRESHOLD,
            treat_missing_data=cloudwatch.TreatMissingData.NOT_BREACHING,
            alarm_description=f"{description} See {RUNBOOK}#{name.partition('-')[0].lower()}",
        )
        alarm.add_alarm_action(self._action)
        self._alarms[name] = alarm
