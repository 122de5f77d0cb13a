"""Which alarms a stage has: one or two for each promise, and those that notice when the stage itself is silent."""

from collections.abc import Iterator, Mapping
from functools import partial

from aws_cdk import Duration
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_sns as sns
from constructs import Construct

from infra.arrivals import ArrivalQueues
from infra.dashboard import METRIC_PERIOD, OwnMetric, add_dashboard, oldest_event, own_metric
from infra.functions import TABLES, RouterFunction
from infra.machines import Machines
from infra.names import StackNames
from infra.plain_alarm import PlainAlarm, total
from infra.records import delivery_stream_alarms
from lake.settings import Settings
from lake.time import Schedule

LATE_ARRIVAL_SECONDS = 900
"""An S3 event that waits this long in the queue raises the alarm; usually: ``input.event_window_seconds``."""
HOUR = Duration.hours(1)
"""Longer than the interval between two sweeps, or two watches of the stream, and their timeout together: a failure that
lasts raises one alarm, not one for each of them. Lambda writes a metric at the end of an invocation, with the time of
its beginning (https://docs.aws.amazon.com/lambda/latest/dg/monitoring-metrics-view.html). Also the interval of the dry
runs for the next night."""
QUARTER = Duration.minutes(15)
"""The interval between two sweeps: one value in each period. Longer than the 5 to 10 minutes by which logs, and the
metrics of functions in them, can be late (AWS Lambda Developer Guide)."""
TWO_HOURS = Duration.hours(2)
"""Longer than the time from one complete hour of a dataset to the next: a writer that stays wrong is one alarm."""
STREAM_OLDEST_MINUTES = 30
"""Two intervals of the sweep: the first of them repairs lost pointers."""
HOURS_WITHOUT_NIGHT = 26
"""A day, the hour by which it is longer when summer time ends, and one for the minutes by which a start or its metric
is late: the window of an alarm slides."""
TABLES_BEHIND_MINUTES = 15
ANSWERED = frozenset({"promote", "resubmit"})
"""Functions that only a person's command invokes, which shows their errors."""


def add_alarms(
    scope: Construct,
    *,
    names: StackNames,
    topic: sns.ITopic,
    arrivals: ArrivalQueues,
    functions: Mapping[str, RouterFunction],
    machines: Machines,
    alarm_lines: cloudwatch.Metric,
    settings: Settings,
) -> None:
    """Every alarm of the stack, each with an action of its own, and a dashboard of the stack's metrics.

    Their number does not depend on datasets or shards: docs/adr/0014 says why they are few and plain.
    """
    construct = Construct(scope, "Alarms")
    own = partial(own_metric, names.stack)
    alarms = [
        *_of_silence(settings, functions, machines),
        *_of_control_plane(own, arrivals, functions, machines),
        *_of_data(own, alarm_lines, settings),
        *_of_lateness_and_cost(own, functions, settings),
        *(delivery_stream_alarms(settings.records, names, own) if settings.records else ()),
    ]
    created = [alarm.create(construct, topic, settings.stage) for alarm in alarms]
    add_dashboard(construct, names.stack, own, created, arrivals, functions, machines)


def _of_silence(
    settings: Settings, functions: Mapping[str, RouterFunction], machines: Machines
) -> Iterator[PlainAlarm]:
    """Metrics that AWS writes: the stage cannot report that its own schedules have ended.

    A missing value of theirs counts as 0: for one that is only missing, CloudWatch takes older values of its evaluation
    range, and the alarm comes hours later (User Guide, "Configuring how CloudWatch alarms treat missing data").
    """
    yield PlainAlarm(
        "NoSweep",
        total([functions["sweep"].function.metric_invocations(period=HOUR, statistic="Sum")], HOUR),
        "No sweep has begun for an hour, so that no other alarm can be trusted: run 'hybrid-router sweep --dry-run'.",
        on_silence=True,
    )
    if Schedule.parse(settings.schedule.overnight).is_daily:
        yield PlainAlarm(
            "NoNight",
            total([machines.overnight.state_machine.metric_started(period=HOUR, statistic="Sum")], HOUR),
            f"No execution of overnight has begun for {HOURS_WITHOUT_NIGHT} hours: run 'hybrid-router status'.",
            datapoints=(HOURS_WITHOUT_NIGHT, HOURS_WITHOUT_NIGHT),
            on_silence=True,
        )
    dropped = [
        functions[name].function.metric("AsyncEventsDropped", period=HOUR, statistic="Sum")
        for name in ("sweep", "catalog", "plan", TABLES)
        if name in functions
    ]
    yield PlainAlarm(
        "DroppedEvents",
        total(dropped, HOUR),
        "Lambda has dropped a scheduled start of a function: run 'hybrid-router logs <function> --contains ERROR'.",
    )


def _of_control_plane(
    own: OwnMetric, arrivals: ArrivalQueues, functions: Mapping[str, RouterFunction], machines: Machines
) -> Iterator[PlainAlarm]:
    yield PlainAlarm(
        "DeadLetters",
        arrivals.dead_letters.metric_approximate_number_of_messages_visible(period=METRIC_PERIOD, statistic="Maximum"),
        "All attempts of an event or a schedule failed: run 'hybrid-router dead-letters ls'.",
    )
    yield PlainAlarm(
        "LateArrivals",
        oldest_event(own, arrivals),
        f"Arrivals wait over {LATE_ARRIVAL_SECONDS // 60} minutes for route: run 'hybrid-router logs route'.",
        LATE_ARRIVAL_SECONDS,
    )
    errors = [item.function.metric_errors(period=HOUR) for name, item in functions.items() if name not in ANSWERED]
    yield PlainAlarm(
        "Errors",
        total(errors, HOUR),
        "A function failed; the dashboard shows which: run 'hybrid-router logs <function> --contains ERROR'.",
    )
    ended = [
        metric(period=QUARTER)
        for machine in machines.all
        for metric in (machine.state_machine.metric_failed, machine.state_machine.metric_timed_out)
    ]
    yield PlainAlarm(
        "Failed",
        total(ended, QUARTER),
        "An execution of a state machine failed or timed out: run 'hybrid-router logs executions --since 1d'.",
    )


def _of_data(own: OwnMetric, alarm_lines: cloudwatch.Metric, settings: Settings) -> Iterator[PlainAlarm]:
    yield PlainAlarm(
        "JobLines",
        # Nothing writes a value when all is well: without the 0 an older line hides a new one for hours.
        total([alarm_lines], HOUR),
        "A manifest was not published, access is denied, pointers stay in the inbox, or an hour differs: run "
        "'hybrid-router failures'.",
    )
    yield PlainAlarm(
        "SweepVanished",
        own("sweep", "SweepVanished"),
        "The sweep could not finish a publish, and the manifest is FAILED: run 'hybrid-router failures'.",
    )
    yield PlainAlarm(
        "SweepStalled",
        own("sweep", "SweepStalled", "Maximum", period=HOUR),
        "Manifests are open 12 hours after their night began, or a listing of missed events is behind: run "
        "'hybrid-router status' and 'hybrid-router logs sweep'.",
    )
    yield PlainAlarm(
        "DatasetLimit",
        own("route", "FilesBeyondDatasetLimit", period=HOUR),
        "Files of new datasets are not converted, because keys have created max_datasets of them: run "
        "'hybrid-router failures'.",
    )
    share = settings.alarms.max_quarantined_share
    if share == 1:
        return
    shares = [
        own("settle", "DatasetsAboveQuarantinedShare", "Maximum", TWO_HOURS),
        own("sweep", "HoursAboveQuarantinedShare", period=TWO_HOURS),
    ]
    yield PlainAlarm(
        "QuarantinedShare",
        total(shares, TWO_HOURS),
        "More than alarms.max_quarantined_share of a dataset is in the quarantine: run 'hybrid-router quarantine ls'.",
    )
    # Both are of the same log lines: the numbers of SQS come minutes later, and until then the share would be larger.
    metrics = {
        "ignored": own("route", "IgnoredFiles", period=HOUR),
        "arrivals": own("route", "Arrivals", period=HOUR),
    }
    yield PlainAlarm(
        "IgnoredShare",
        cloudwatch.MathExpression(
            expression=f"IF(FILL(ignored, 0) > {share:g} * FILL(arrivals, 0), 1, 0)",
            using_metrics=metrics,
            period=HOUR,
        ),
        "No rule of the settings takes more than alarms.max_quarantined_share of an hour's files: run "
        "'hybrid-router failures'.",
    )


def _of_lateness_and_cost(
    own: OwnMetric, functions: Mapping[str, RouterFunction], settings: Settings
) -> Iterator[PlainAlarm]:
    """Alarms for late nights, a late stream (a metric has the value of its worst shard), late tables, and dollars."""
    yield PlainAlarm(
        "PlanDoesNotFit",
        own("plan", "PlanLateMinutes", "Maximum", period=HOUR),
        "The backlog will not be converted by schedule.deadline: run 'hybrid-router plan' to see by how much.",
    )
    yield PlainAlarm(
        "NightIsLate",
        own("run_status", "NightLateMinutes", "Maximum", period=HOUR),
        "A night is expected to end after schedule.deadline: run 'hybrid-router status' to see what is left.",
    )
    yield PlainAlarm(
        "StreamOldest",
        own("sweep", "StreamOldestMinutes", "Maximum", HOUR),
        f"A stream manifest is open for {STREAM_OLDEST_MINUTES} minutes or longer: run 'hybrid-router stream status'.",
        STREAM_OLDEST_MINUTES,
    )
    yield PlainAlarm(
        "StreamSilent",
        own("sweep", "StreamSilent", "Maximum", QUARTER),
        "A streaming job does not work inside its window: run 'hybrid-router stream status'.",
        # While one run replaces another, one sweep can find no heartbeat. Two values of three, because sweeps differ
        # in length: a period can be without a value.
        datapoints=(2, 3),
    )
    yield PlainAlarm(
        "StreamSpilling",
        own("stream_control", "StreamSpilling", "Maximum", HOUR),
        "Peak files go to the batch lane, because the backlog of the stream takes longer than "
        "stream.latency_goal_seconds: run 'hybrid-router stream status'.",
    )
    if TABLES in functions:
        yield PlainAlarm(
            "TablesBehind",
            own(TABLES, "TablesBehindMinutes", "Maximum", period=QUARTER),
            f"An Iceberg table does not show what was published {TABLES_BEHIND_MINUTES} minutes ago, perhaps because "
            "another writer has changed its rows: run 'hybrid-router tables status'.",
            TABLES_BEHIND_MINUTES,
        )
    if settings.alarms.daily_dollars:
        yield PlainAlarm(
            "DailyDollars",
            own("sweep", "DayDollars", "Maximum", period=HOUR),
            "The job runs of this day cost alarms.daily_dollars or more: run 'hybrid-router cost' to see what for.",
            settings.alarms.daily_dollars,
        )
