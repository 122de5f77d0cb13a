"""The dashboard of a stage, and the metrics that the stage writes itself, as alarms and dashboard read them."""

from collections.abc import Callable, Mapping, Sequence

from aws_cdk import Duration, Stack
from aws_cdk import aws_cloudwatch as cloudwatch
from constructs import Construct

from infra.arrivals import ArrivalQueues
from infra.functions import RouterFunction
from infra.machines import Machines

WIDTH, HEIGHT = 8, 4
"""Size of a graph: three in a row, all on one screen (a row of the grid has 24 columns)."""
METRIC_PERIOD = Duration.minutes(5)
OwnMetric = Callable[..., cloudwatch.Metric]
"""``own(function, name)`` returns a metric that a function writes: ``metric_of`` for one stage. ``router.telemetry``
describes the metrics; a test compares the names."""


def metric_of(
    namespace: str, dimension: str, value: str, name: str, statistic: str = "Sum", period: Duration = METRIC_PERIOD
) -> cloudwatch.Metric:
    """Return a metric with one dimension."""
    return cloudwatch.Metric(
        namespace=namespace,
        metric_name=name,
        dimensions_map={dimension: value},
        statistic=statistic,
        period=period,
    )


def oldest_event(own: OwnMetric, arrivals: ArrivalQueues) -> cloudwatch.MathExpression:
    """Return the metric of the time (seconds) for which the oldest event of the input bucket has waited for ``route``.

    SQS leaves out a message that was received three times
    (https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-available-cloudwatch-metrics.html);
    ``route`` gets it again, and reports it, in each period.
    """
    period = Duration.minutes(15)
    metrics = {
        "queued": arrivals.queue.metric_approximate_age_of_oldest_message(period=period, statistic="Maximum"),
        "unrouted": own("route", "UnroutedSeconds", "Maximum", period),
    }
    return cloudwatch.MathExpression(
        expression="MAX([FILL(queued, 0), FILL(unrouted, 0)])",
        using_metrics=metrics,
        period=period,
        label="Oldest event (s)",
    )


def add_dashboard(
    scope: Construct,
    title: str,
    own: OwnMetric,
    alarms: Sequence[cloudwatch.Alarm],
    arrivals: ArrivalQueues,
    functions: Mapping[str, RouterFunction],
    machines: Machines,
) -> None:
    """Add a dashboard: the alarms, the numbers of the promises, then graphs of lanes, nights and cost."""
    # Dashboards are global in an account: a stage of the same name in another region has its own.
    dashboard = cloudwatch.Dashboard(scope, "Dashboard", dashboard_name=f"{title}-{Stack.of(scope).region}")
    # A widget may have 100 alarms: a stack with more alarms on records would exceed its limit of 500 resources.
    dashboard.add_widgets(cloudwatch.AlarmStatusWidget(title="Alarms", alarms=list(alarms), width=24, height=4))
    dashboard.add_widgets(_promises(own, arrivals))
    dashboard.add_widgets(
        _graph(
            "Arrivals",
            [arrivals.queue.metric_number_of_messages_sent(period=METRIC_PERIOD, statistic="Sum")],
            [oldest_event(own, arrivals)],
        ),
        _graph(
            "Errors of each function, and invocations of route",
            [item.function.metric_errors(period=METRIC_PERIOD, label=name) for name, item in functions.items()],
            [functions["route"].function.metric_invocations(period=METRIC_PERIOD, label="invocations of route")],
        ),
        _graph(
            "Executions",
            [machine.state_machine.metric_succeeded(period=METRIC_PERIOD) for machine in machines.all],
            [machine.state_machine.metric_failed(period=METRIC_PERIOD) for machine in machines.all],
        ),
    )
    dashboard.add_widgets(
        _graph("Bytes by lane", [own("route", "StreamBytes"), own("route", "BatchBytes")]),
        _graph(
            "Stream lane",
            [own("stream_control", "StreamBacklogBytes", "Maximum")],
            [own("stream_control", "StreamRunning", "Minimum")],
        ),
        _graph(
            "Micro-batch, and spilling to the batch lane",
            [own("stream_control", "MicroBatchMinutes", "Maximum")],
            [own("stream_control", "StreamSpilling", "Maximum")],
        ),
    )
    # Maximum: while manifests of an execution are worked on, each round of settle writes the totals of all again.
    dashboard.add_widgets(
        _graph("Not published", [own("settle", f"{kind}Manifests", "Maximum") for kind in ("Failed", "Open")]),
        _graph(
            "Quarantined lines, and files that could not be read",
            [own("settle", "RejectedLines", "Maximum")],
            [own("settle", "FailedFiles", "Maximum")],
        ),
        _graph("Dollars of the day (UTC)", [own("sweep", "DayDollars", "Maximum")]),
    )


def _promises(own: OwnMetric, arrivals: ArrivalQueues) -> cloudwatch.IWidget:
    """Shows in numbers the lateness of each lane, what is not converted, what is wrong with the data, and the costs."""
    dead_letters = arrivals.dead_letters.metric_approximate_number_of_messages_visible(
        period=METRIC_PERIOD, statistic="Maximum", label="Dead letters"
    )
    numbers = (
        ("sweep", "StreamOldestMinutes", "Oldest of the stream (min)"),
        ("plan", "PlanLateMinutes", "Next night late by (min)"),
        ("run_status", "NightLateMinutes", "This night late by (min)"),
        ("sweep", "SweepStalled", "Stalled manifests"),
        ("settle", "DatasetsAboveQuarantinedShare", "Datasets above max_quarantined_share"),
        ("sweep", "DayDollars", "Dollars of today (UTC)"),
    )
    metrics = [own(function, name, "Maximum").with_(label=label) for function, name, label in numbers]
    return cloudwatch.SingleValueWidget(
        title="Promises", metrics=[oldest_event(own, arrivals), *metrics, dead_letters], width=24, height=3
    )


def _graph(
    title: str, left: Sequence[cloudwatch.IMetric], right: Sequence[cloudwatch.IMetric] = ()
) -> cloudwatch.IWidget:
    return cloudwatch.GraphWidget(title=title, left=list(left), right=list(right), width=WIDTH, height=HEIGHT)
