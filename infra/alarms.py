"""Which alarms a stage has."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aws_cdk import Duration
from constructs import Construct

from infra.alarm_set import AlarmSet
from infra.dashboard import add_dashboard
from infra.own_metrics import ANY_FUNCTION, METRIC_PERIOD, OwnMetrics
from lake.shards import FIRST_SHARD

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from aws_cdk import aws_cloudwatch as cloudwatch
    from aws_cdk import aws_sns as sns

    from infra.arrivals import ArrivalQueues
    from infra.delivery_stream_alarms import DeliveryStreamAlarms
    from infra.functions import RouterFunction
    from infra.machine import Machine
    from infra.machines import Machines
    from lake.settings import AlarmSettings

LATE_ARRIVAL_SECONDS = 900
"""An S3 event that waits this long in the queue raises the alarm; usually: ``input.event_window_seconds``."""
PLAN_PERIOD = Duration.hours(1)
"""The interval of the dry runs for the next night."""
NIGHT_PERIOD = Duration.hours(1)
"""The longest planned work of a run, at whose end the execution is compared with its plan."""
LASTING_PERIOD = Duration.hours(1)
"""Longer than the interval between two sweeps, or two watches of the stream: what lasts is one alarm, not one for each
of them that sees it."""
SWEEP_PERIOD = Duration.minutes(15)
"""The interval between two sweeps: one value in each period."""


class Alarms(Construct):
    """Every alarm of the stack, each with a way to the topic, and a dashboard of the stack's metrics.

    An alarm is raised after one period of its metric at or above its threshold, unless it has a reason to wait for more
    of them; missing data counts as good. Each shard of the stream lane has its own alarms.
    """

    def __init__(
        self,
        scope: Construct,
        name: str,
        *,
        title: str,
        topic: sns.ITopic,
        arrivals: ArrivalQueues,
        functions: Mapping[str, RouterFunction],
        machines: Machines,
        alarm_lines: cloudwatch.Metric,
        metrics_namespace: str,
        settings: AlarmSettings,
        records: DeliveryStreamAlarms | None,
        shards: Sequence[str],
    ) -> None:
        super().__init__(scope, name)
        self._alarms = AlarmSet(self, title, topic)
        own = OwnMetrics(metrics_namespace)
        oldest_age = arrivals.queue.metric_approximate_age_of_oldest_message(period=METRIC_PERIOD, statistic="Maximum")
        dead_letters = arrivals.dead_letters.metric_approximate_number_of_messages_visible(
            period=METRIC_PERIOD, statistic="Maximum"
        )
        self._alarms.add(
            "DeadLetters", dead_letters, 1, "All attempts of an event or a schedule failed: read the dead-letter queue."
        )
        self._alarms.add(
            "LateArrivals",
            oldest_age,
            LATE_ARRIVAL_SECONDS,
            f"Arrivals wait over {LATE_ARRIVAL_SECONDS // 60} minutes for route: check its errors and throttles.",
        )
        self._alarms.add(
            "LedgerRefuses",
            own.metric(ANY_FUNCTION, "LedgerRefusals"),
            1,
            "The ledger's table refuses functions: the log of one whose errors are open names permission, key or load.",
        )
        for function_name, function in functions.items():
            self._alarms.add(
                f"LedgerRefuses-{function_name}",
                own.metric(function_name, "LedgerRefusals"),
                1,
                f"The ledger's table refuses the function {function_name}, which explains its errors.",
                told_by="LedgerRefuses",
            )
            errors = function.function.metric_errors(period=METRIC_PERIOD)
            self._alarms.add(
                f"Errors-{function_name}", errors, 1, f"The function {function_name} failed: read its log group."
            )
        self._alarms.add(
            "JobLines",
            alarm_lines,
            1,
            "A manifest was not published, pointers stay in the inbox, or an hour differs: find ALARM in the log.",
        )
        self._alarms.add(
            "SweepVanished",
            own.metric("sweep", "SweepVanished"),
            1,
            "The sweep could not finish a publish, and the manifest is FAILED: its log names the manifest.",
        )
        self._alarms.add(
            "SweepStalled",
            own.metric("sweep", "SweepStalled", "Maximum", period=LASTING_PERIOD),
            1,
            "Manifests are open for longer than sweep.stalled_hours: the log of sweep names each, with its state.",
        )
        self._alarms.add(
            "QuarantinedShare",
            own.metric("settle", "DatasetsAboveQuarantinedShare", "Maximum"),
            1,
            "More than alarms.max_quarantined_share of a dataset is in the quarantine: run 'hybrid-router night'.",
        )
        self._alarms.add(
            "QuarantinedHour",
            own.metric("sweep", "HoursAboveQuarantinedShare"),
            1,
            "The stream lane has put too much of an hour into the quarantine: the log of sweep names the hour.",
        )
        self._alarms.add(
            "DatasetLimit",
            own.metric("route", "FilesBeyondDatasetLimit"),
            1,
            "Files of new datasets are not converted, because keys have created max_datasets of them: see route's log.",
        )
        self._alarms.add(
            "PlanDoesNotFit",
            own.metric("plan", "PlanLateMinutes", "Maximum", period=PLAN_PERIOD),
            1,
            "The backlog will not be converted by schedule.deadline: run 'hybrid-router plan' to see by how much.",
        )
        self._alarms.add(
            "NightIsLate",
            own.metric("run_status", "NightLateMinutes", "Maximum", period=NIGHT_PERIOD),
            1,
            "A night is expected to end after schedule.deadline: run 'hybrid-router status' to see what is left.",
        )
        for shard in shards:
            self._add_stream_alarms(own, settings, shard)
        if settings.daily_dollars:
            self._alarms.add(
                "DailyDollars",
                own.metric("sweep", "DayDollars", "Maximum", period=LASTING_PERIOD),
                settings.daily_dollars,
                "The job runs of this day cost alarms.daily_dollars or more: run 'hybrid-router cost' to see which.",
            )
        if settings.self_test:
            self._alarms.add(
                "SelfTestLost",
                own.metric("sweep", "SelfTestLost", "Maximum", period=LASTING_PERIOD),
                1,
                "The self-test of the alarms did not come back from their topic: run 'hybrid-router doctor'.",
            )
        for machine in machines.all:
            self._add_machine_alarms(machine)
        for wanted in records.of_stage(own) if records else ():
            datapoints = (wanted.periods, wanted.periods)
            self._alarms.add(wanted.name, wanted.metric, wanted.threshold, wanted.description, datapoints)
        self._alarms.connect()
        add_dashboard(self, title, own, self._alarms.told, arrivals, functions, machines, shards)

    def _add_stream_alarms(self, own: OwnMetrics, settings: AlarmSettings, shard: str) -> None:
        def metric(function: str, name: str, period: Duration = LASTING_PERIOD) -> cloudwatch.Metric:
            return own.metric(function, name, "Maximum", period, shard)

        suffix, subject = ("", "") if shard == FIRST_SHARD else (f"-{shard}", f"Shard {shard}: ")
        self._alarms.add(
            f"StreamOldest{suffix}",
            metric("sweep", "StreamOldestMinutes"),
            settings.stream_oldest_minutes,
            f"{subject}A stream manifest is open for alarms.stream_oldest_minutes or longer: run 'hybrid-router stream "
            "status'.",
        )
        self._alarms.add(
            f"SlowMicroBatch{suffix}",
            metric("stream_control", "MicroBatchMinutes"),
            settings.micro_batch_minutes,
            f"{subject}A micro-batch takes alarms.micro_batch_minutes or longer: run 'hybrid-router stream status'.",
        )
        self._alarms.add(
            f"StreamSilent{suffix}",
            metric("sweep", "StreamSilent", SWEEP_PERIOD),
            1,
            f"{subject}The streaming job does not work inside its window: run 'hybrid-router stream status'.",
            # While one run replaces another, one sweep can find no heartbeat. Two values of three, because sweeps
            # differ in length: a period can be without a value.
            datapoints=(2, 3),
        )
        self._alarms.add(
            f"StreamSpilling{suffix}",
            metric("stream_control", "StreamSpilling"),
            1,
            f"{subject}Peak files go to the batch lane: the backlog of the stream takes longer than "
            "stream.latency_goal_seconds.",
        )

    def _add_machine_alarms(self, machine: Machine) -> None:
        timed_out = machine.state_machine.metric_timed_out(period=METRIC_PERIOD)
        self._alarms.add(
            f"Failed-{machine.node.id}",
            machine.unknown_failures(),
            1,
            f"An execution of {machine.name} failed and could not notify you: read its error and cause.",
        )
        self._alarms.add(
            f"TimedOut-{machine.node.id}",
            timed_out,
            1,
            f"An execution of {machine.name} timed out: see in which state it was.",
        )
