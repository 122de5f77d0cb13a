"""Who is told when something is late or broken, and one page that shows the system's day."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aws_cdk import Duration
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_cloudwatch_actions as cloudwatch_actions
from aws_cdk import aws_sns as sns
from constructs import Construct

if TYPE_CHECKING:
    from collections.abc import Mapping

    from infra.arrivals import Arrivals
    from infra.functions import RouterFunction
    from infra.machines import Machine, Machines

LATE_SECONDS = 900
"""An arrival that waits so long for ``route`` is late; without a backlog it waits for the batching window only."""
FIVE_MINUTES = Duration.minutes(5)


class AlarmTopic(Construct):
    """The topic that people subscribe to."""

    def __init__(self, scope: Construct, name: str) -> None:
        super().__init__(scope, name)
        self.topic = sns.Topic(self, "Topic", enforce_ssl=True)


class Alarms(Construct):
    """Alarms to the topic, and the dashboard."""

    def __init__(
        self,
        scope: Construct,
        name: str,
        *,
        title: str,
        topic: sns.ITopic,
        arrivals: Arrivals,
        functions: Mapping[str, RouterFunction],
        machines: Machines,
    ) -> None:
        super().__init__(scope, name)
        self._action = cloudwatch_actions.SnsAction(topic)
        self._alarms: list[cloudwatch.Alarm] = []
        age = arrivals.queue.metric_approximate_age_of_oldest_message(period=FIVE_MINUTES, statistic="Maximum")
        dead = arrivals.dead_letters.metric_approximate_number_of_messages_visible(
            period=FIVE_MINUTES, statistic="Maximum"
        )
        self._alarm("DeadLetters", dead, 1, "Events or schedules were given up: read the dead-letter queue.")
        self._alarm("LateArrivals", age, LATE_SECONDS, "Arrivals wait for route: see its errors and throttles.")
        for spec, function in functions.items():
            errors = function.function.metric_errors(period=FIVE_MINUTES)
            self._alarm(f"Errors-{spec}", errors, 1, f"The function {spec} failed: read its log.")
        for machine in (machines.overnight, machines.backfill, machines.stream_window):
            self._machine(machine)
        self._dashboard(title, arrivals, functions, machines)

    def _machine(self, machine: Machine) -> None:
        failed = machine.machine.metric_failed(period=FIVE_MINUTES)
        late = machine.machine.metric_timed_out(period=FIVE_MINUTES)
        self._alarm(f"Failed-{machine.node.id}", failed, 1, f"{machine.name} failed: its execution says why.")
        self._alarm(f"TimedOut-{machine.node.id}", late, 1, f"{machine.name} did not end in time: see its execution.")

    def _alarm(self, name: str, metric: cloudwatch.IMetric, threshold: float, text: str) -> None:
        alarm = cloudwatch.Alarm(
            self,
            name,
            metric=metric,
            threshold=threshold,
            evaluation_periods=1,
            comparison_operator=cloudwatch.ComparisonOperator.GREATER_THAN_OR_EQUAL_TO_THRESHOLD,
            treat_missing_data=cloudwatch.TreatMissingData.NOT_BREACHING,
            alarm_description=text,
        )
        alarm.add_alarm_action(self._action)
        self._alarms.append(alarm)

    def _dashboard(
        self, title: str, arrivals: Arrivals, functions: Mapping[str, RouterFunction], machines: Machines
    ) -> None:
        route = functions["route"].function
        runs = (machines.overnight, machines.backfill, machines.stream_window)
        dashboard = cloudwatch.Dashboard(self, "Dashboard", dashboard_name=title)
        dashboard.add_widgets(
            cloudwatch.AlarmStatusWidget(title="Alarms", alarms=list(self._alarms), width=24, height=3)
        )
        dashboard.add_widgets(
            cloudwatch.GraphWidget(
                title="Arrivals",
                left=[arrivals.queue.metric_number_of_messages_sent(period=FIVE_MINUTES, statistic="Sum")],
                right=[arrivals.queue.metric_approximate_age_of_oldest_message(period=FIVE_MINUTES)],
                width=8,
            ),
            cloudwatch.GraphWidget(
                title="route",
                left=[route.metric_invocations(period=FIVE_MINUTES), route.metric_errors(period=FIVE_MINUTES)],
                right=[route.metric_duration(period=FIVE_MINUTES)],
                width=8,
            ),
            cloudwatch.GraphWidget(
                title="Executions",
                left=[machine.machine.metric_succeeded(period=FIVE_MINUTES) for machine in runs],
                right=[machine.machine.metric_failed(period=FIVE_MINUTES) for machine in runs],
                width=8,
            ),
        )
