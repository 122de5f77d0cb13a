"""The dashboard of a stage."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aws_cdk import aws_cloudwatch as cloudwatch

from infra.own_metrics import METRIC_PERIOD

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from constructs import Construct

    from infra.arrivals import Arrivals
    from infra.functions import RouterFunction
    from infra.machines import Machines
    from infra.own_metrics import OwnMetrics


def add_dashboard(
    scope: Construct,
    title: str,
    own: OwnMetrics,
    alarms: Sequence[cloudwatch.Alarm],
    arrivals: Arrivals,
    functions: Mapping[str, RouterFunction],
    machines: Machines,
) -> None:
    """Add a dashboard of this name: the states of the alarms, then graphs of arrivals, lanes, nights and cost."""
    route = functions["route"].function
    dashboard = cloudwatch.Dashboard(scope, "Dashboard", dashboard_name=title)
    dashboard.add_widgets(cloudwatch.AlarmStatusWidget(title="Alarms", alarms=list(alarms), width=24, height=3))
    dashboard.add_widgets(
        cloudwatch.GraphWidget(
            title="Arrivals",
            left=[arrivals.queue.metric_number_of_messages_sent(period=METRIC_PERIOD, statistic="Sum")],
            right=[arrivals.queue.metric_approximate_age_of_oldest_message(period=METRIC_PERIOD)],
            width=8,
        ),
        cloudwatch.GraphWidget(
            title="route",
            left=[route.metric_invocations(period=METRIC_PERIOD), route.metric_errors(period=METRIC_PERIOD)],
            right=[route.metric_duration(period=METRIC_PERIOD)],
            width=8,
        ),
        cloudwatch.GraphWidget(
            title="Executions",
            left=[machine.state_machine.metric_succeeded(period=METRIC_PERIOD) for machine in machines.all],
            right=[machine.state_machine.metric_failed(period=METRIC_PERIOD) for machine in machines.all],
            width=8,
        ),
    )
    dashboard.add_widgets(
        cloudwatch.GraphWidget(
            title="Bytes by lane",
            left=[own.metric("route", "StreamBytes"), own.metric("route", "BatchBytes")],
            width=8,
        ),
        cloudwatch.GraphWidget(
            title="Stream lane",
            left=[own.metric("stream_control", "StreamBacklogBytes", "Maximum")],
            right=[own.metric("stream_control", "StreamRunning", "Minimum")],
            width=8,
        ),
        cloudwatch.GraphWidget(
            title="Not published",
            left=[
                own.metric("settle", "FailedManifests"),
                own.metric("settle", "OpenManifests"),
            ],
            width=8,
        ),
    )
    dashboard.add_widgets(
        cloudwatch.GraphWidget(
            title="Quarantined lines, and files that could not be read",
            left=[own.metric("settle", "RejectedLines")],
            right=[own.metric("settle", "FailedFiles")],
            width=8,
        ),
        cloudwatch.GraphWidget(
            title="Dollars of the day (UTC)", left=[own.metric("sweep", "DayDollars", "Maximum")], width=8
        ),
    )
