"""The alarms of a stage: one or two for each promise, and alarms for a silent stage.

And the topic by which their messages reach people.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from aws_cdk import Duration, Stack
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_cloudwatch_actions as cloudwatch_actions
from aws_cdk import aws_iam as iam
from aws_cdk import aws_sns as sns
from aws_cdk import aws_sns_subscriptions as subscriptions
from constructs import Construct

from infra.arrivals import ArrivalQueues
from infra.dashboard import METRIC_PERIOD, OwnMetric, add_dashboard, metric_of, oldest_event
from infra.functions import TABLES, RouterFunction
from infra.machines import Machines
from infra.names import delivery_stream
from lake.settings import RecordsRule, Settings
from lake.texts import with_options
from lake.time import Schedule

RUNBOOK = "docs/runbook.md"
"""The page with an entry for each alarm, in the repository. A person finds it in the checkout that was deployed."""
LATE_ARRIVAL_SECONDS = 900
"""An S3 event that waits this long in the queue raises the alarm; it usually waits ``input.event_window_seconds``."""
HOUR = Duration.hours(1)
"""Longer than the interval plus the timeout of sweeps, or of watches of the stream: a lasting failure raises one alarm,
not one for each invocation. Lambda writes a metric at the end of an invocation, with the time of its beginning
(https://docs.aws.amazon.com/lambda/latest/dg/monitoring-metrics-view.html). Also the interval of the dry runs for the
next night."""
QUARTER = Duration.minutes(15)
"""The interval between two sweeps: one value in each period. Longer than the 5 to 10 minutes by which logs, and the
metrics of functions in them, can be late (AWS Lambda Developer Guide)."""
TWO_HOURS = Duration.hours(2)
"""Longer than the time from one complete hour of a dataset to the next: a writer that stays wrong raises one alarm."""
STREAM_OLDEST_MINUTES = 30
"""Two intervals of the sweep: the first sweep repairs lost pointers."""
HOURS_WITHOUT_NIGHT = 26
"""A day, an hour for the end of summer time, and an hour for a late start or metric: the window of an alarm slides."""
TABLES_BEHIND_MINUTES = 15
ANSWERED = frozenset({"promote", "resubmit"})
"""Functions that only a person's command invokes, which shows their errors."""


@dataclass(frozen=True, slots=True)
class PlainAlarm:
    """An alarm that publishes to the topic by itself, independently of other alarms."""

    name: str
    """The part before a hyphen is the heading of its entry in the runbook."""
    metric: cloudwatch.Metric | cloudwatch.MathExpression
    description: str
    threshold: float = 1
    datapoints: tuple[int, int] = (1, 1)
    """Number of bad periods that raise the alarm, and number of periods that are considered."""
    on_silence: bool = False
    """Whether values below the threshold and missing data raise the alarm, instead of values from the threshold on."""

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
    """The sum of at most ten metrics, with 0 for a missing value: a value that comes after ``period`` is not seen.

    Ten is the limit of an alarm's expression (Amazon CloudWatch User Guide, "Limits that apply to alarms").
    """
    using = {f"m{number}": metric for number, metric in enumerate(metrics)}
    expression = " + ".join(f"FILL({name}, 0)" for name in using)
    return cloudwatch.MathExpression(expression=expression, using_metrics=using, period=period)


def add_alarm_topic(scope: Construct, email: str) -> sns.Topic:
    """Add the topic for alarms and failed executions.

    ``email`` is subscribed: SNS sends one mail whose link confirms the subscription; "" if people subscribe later.
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


def add_alarms(
    scope: Construct,
    *,
    stack: str,
    topic: sns.ITopic,
    arrivals: ArrivalQueues,
    functions: Mapping[str, RouterFunction],
    machines: Machines,
    alarm_lines: cloudwatch.Metric,
    settings: Settings,
) -> None:
    """Add every alarm of the stack, each with its own action, and a dashboard of the stack's metrics.

    The number of alarms does not depend on datasets or shards: docs/adr/0014 explains why they are few and plain.
    """
    construct = Construct(scope, "Alarms")
    own = partial(metric_of, stack, "service")
    alarms = [
        *_of_silence(settings, functions, machines),
        *_of_control_plane(own, arrivals, functions, machines),
        *_of_data(own, alarm_lines, settings),
        *_of_lateness_and_cost(own, functions, settings),
        *(_of_records(settings.records, stack, own) if settings.records else ()),
    ]
    created = [alarm.create(construct, topic, settings.stage) for alarm in alarms]
    add_dashboard(construct, stack, own, created, arrivals, functions, machines)


def _of_silence(
    settings: Settings, functions: Mapping[str, RouterFunction], machines: Machines
) -> Iterator[PlainAlarm]:
    """Alarms on metrics that AWS writes: the stage cannot report that its own schedules have ended.

    A missing value counts as 0: otherwise CloudWatch would use older values of its evaluation range, and the alarm
    would come hours later (User Guide, "Configuring how CloudWatch alarms treat missing data").
    """
    yield PlainAlarm(
        "NoSweep",
        total([functions["sweep"].function.metric_invocations(period=HOUR, statistic="Sum")], HOUR),
        "No sweep has begun for an hour, so no other alarm can be trusted: run 'hybrid-router sweep --dry-run'.",
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
        # Without a problem there is no value: without the 0 an older line would hide a new line for hours.
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
    # Both come from the same log lines: the numbers of SQS come minutes later, and would make the share larger.
    metrics = {
        "ignored": own("route", "IgnoredFiles", period=HOUR),
        "arrivals": own("route", "Arrivals", period=HOUR),
    }
    yield PlainAlarm(
        "IgnoredShare",
        cloudwatch.MathExpression(
            expression=f"IF(FILL(ignored, 0) > {share:f} * FILL(arrivals, 0), 1, 0)",
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
        # While one run replaces another, one sweep can find no heartbeat. Two values of three, because sweeps differ in
        # length: a period can lack a value.
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


LATE = Duration.minutes(15)
"""A record that waits for this time in Firehose after the buffer's time, or in its Kinesis stream, raises an alarm; AWS
recommends a time above the largest buffer
(https://docs.aws.amazon.com/firehose/latest/dev/firehose-cloudwatch-metrics-best-practices.html)."""
LATE_PERIODS = round(LATE.to_seconds() / METRIC_PERIOD.to_seconds())


def _of_records(records: Sequence[RecordsRule], stack: str, own: OwnMetric) -> Iterator[PlainAlarm]:
    """Alarms of all delivery streams of a stage, on the metrics that Firehose and Kinesis write.

    Names, dimension, statistics and units: Amazon Data Firehose Developer Guide, "Monitor Amazon Data Firehose with
    CloudWatch metrics" (``DeliveryToS3.DataFreshness`` in seconds, ``KinesisMillisBehindLatest`` in milliseconds,
    ``KafkaOffsetLag`` and ``DataReadFromSource.Records`` as counts, all by ``DeliveryStreamName``).
    """
    for record in records:
        stream = delivery_stream(stack, record.name)
        late = f"FILL(freshness, 0) >= {LATE.to_seconds() + record.buffer_seconds:.0f}"
        unread, metrics = _of_kinesis(record, stream) if record.kinesis_stream else _of_kafka(stream)
        metrics["freshness"] = of_firehose(stream, "DeliveryToS3.DataFreshness", "Maximum")
        yield PlainAlarm(
            f"RecordsLate-{record.name}",
            cloudwatch.MathExpression(
                expression=f"IF({late} OR {unread}, 1, 0)", using_metrics=metrics, period=METRIC_PERIOD
            ),
            f"Firehose reads or delivers the records of {record.name} too late: run 'hybrid-router logs records'.",
            datapoints=(LATE_PERIODS, LATE_PERIODS),
        )
    yield PlainAlarm(
        "FailedRecords",
        own("route", "FailedRecordFiles"),
        "Firehose has written records that it could not deliver: 'hybrid-router failures' lists them.",
    )


of_firehose = partial(metric_of, "AWS/Firehose", "DeliveryStreamName")


def _of_kinesis(record: RecordsRule, stream: str) -> tuple[str, dict[str, cloudwatch.IMetric]]:
    """Firehose is behind in the stream, or reads nothing of it.

    A delivery stream that may not read its source writes none of its metrics.
    """
    source = record.kinesis_stream.rpartition("/")[2]
    expression = f"FILL(behind, 0) >= {LATE.to_milliseconds():.0f} OR (FILL(put, 0) > 0 AND FILL(taken, 0) == 0)"
    return expression, {
        "behind": of_firehose(stream, "KinesisMillisBehindLatest", "Maximum"),
        "put": metric_of("AWS/Kinesis", "StreamName", source, "IncomingRecords"),
        "taken": of_firehose(stream, "DataReadFromKinesisStream.Records"),
    }


def _of_kafka(stream: str) -> tuple[str, dict[str, cloudwatch.IMetric]]:
    """Firehose needs longer than ``LATE`` to read the lag.

    CloudWatch gives the lag in messages, and no number is too large for every topic. So the lag is compared with the
    number of messages read from the whole topic. AWS does not document whether it is the lag of one partition; if so,
    the alarm comes later for a topic with many partitions.
    """
    return f"FILL(lag, 0) > {LATE_PERIODS} * FILL(taken, 0)", {
        "lag": of_firehose(stream, "KafkaOffsetLag", "Maximum"),
        "taken": of_firehose(stream, "DataReadFromSource.Records"),
    }
