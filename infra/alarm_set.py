"""Makes the alarms of a stage, each with its way to the topic: one message for one cause."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_cloudwatch_actions as cloudwatch_actions

from infra.alarm_causes import WAIT_PERIOD, cause_of, extension_period

if TYPE_CHECKING:
    from aws_cdk import Duration
    from aws_cdk import aws_sns as sns
    from constructs import Construct

RUNBOOK = "docs/runbook.md"
"""The page with an entry for each alarm, in the repository. A person finds it in the checkout that was deployed."""


@dataclass(frozen=True, slots=True)
class _Added:
    alarm: cloudwatch.Alarm
    description: str
    period: Duration
    """Of the alarm's metric."""
    told_by: str
    """The alarm that is raised with this one and sends the message; "": it sends its own."""


class AlarmSet:
    """The alarms of a stage; they belong to ``scope``. Call ``connect`` when all are added."""

    def __init__(self, scope: Construct, stack_name: str, topic: sns.ITopic) -> None:
        self._scope = scope
        self._stack_name = stack_name
        self._action = cloudwatch_actions.SnsAction(topic)
        self._added: dict[str, _Added] = {}

    @property
    def told(self) -> list[cloudwatch.Alarm]:
        """Those that people are told of, in the order in which they were added."""
        return [added.alarm for added in self._added.values() if not added.told_by]

    def add(
        self,
        name: str,
        metric: cloudwatch.Metric | cloudwatch.MathExpression,
        threshold: float,
        description: str,
        datapoints: tuple[int, int] = (1, 1),
        told_by: str = "",
    ) -> None:
        """Add an alarm. The part of its name before a hyphen is the heading of its entry in the runbook.

        Parameters
        ----------
        datapoints
            Number of bad periods that raise it, and of periods among which they are.
        told_by
            An alarm that is raised whenever this one is, and sends the message: this one only explains others.
        """
        bad, periods = datapoints
        text = f"{description} See {RUNBOOK}#{name.partition('-')[0].lower()}"
        alarm = cloudwatch.Alarm(
            self._scope,
            name,
            metric=metric,
            threshold=threshold,
            evaluation_periods=periods,
            datapoints_to_alarm=bad if periods > 1 else None,
            comparison_operator=cloudwatch.ComparisonOperator.GREATER_THAN_OR_EQUAL_TO_THRESHOLD,
            treat_missing_data=cloudwatch.TreatMissingData.NOT_BREACHING,
            alarm_description=text,
        )
        self._added[name] = _Added(alarm, text, metric.period, told_by)

    def connect(self) -> None:
        """Let each alarm publish to the topic; one that another explains, only while that other is not raised."""
        for name, added in self._added.items():
            if added.told_by:
                continue
            cause = cause_of(name, self._added)
            if cause is None:
                added.alarm.add_alarm_action(self._action)
            else:
                self._add_message(name, added, self._added[cause].alarm)

    def _add_message(self, name: str, added: _Added, cause: cloudwatch.Alarm) -> None:
        """Add the composite alarm that publishes in the place of an alarm: only a composite one can be suppressed."""
        message = cloudwatch.CompositeAlarm(
            self._scope,
            f"{name}-Message",
            # Like the names that CloudFormation gives: who lists the alarms of a stack finds it by the same prefix.
            composite_alarm_name=f"{self._stack_name}-Alarms{name}",
            alarm_rule=cloudwatch.AlarmRule.from_alarm(added.alarm, cloudwatch.AlarmState.ALARM),
            alarm_description=added.description,
            actions_suppressor=cause,
            actions_suppressor_wait_period=WAIT_PERIOD,
            actions_suppressor_extension_period=extension_period(added.period),
        )
        message.add_alarm_action(self._action)
