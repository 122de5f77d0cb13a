"""What raises an alarm on the delivery streams of ``[[records]]``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from aws_cdk import Duration
from aws_cdk import aws_cloudwatch as cloudwatch

from infra.own_metrics import METRIC_PERIOD, OwnMetrics

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from infra.names import StackNames
    from lake.settings import RecordsRule

LATE = Duration.minutes(15)
"""A record that waits in Firehose for so much longer than the buffer's time, or in its Kinesis stream, raises an
alarm; AWS recommends one above the largest buffer
(https://docs.aws.amazon.com/firehose/latest/dev/firehose-cloudwatch-metrics-best-practices.html)."""
LATE_PERIODS = round(LATE.to_seconds() / METRIC_PERIOD.to_seconds())


@dataclass(frozen=True, slots=True)
class DeliveryStreamAlarm:
    """What raises an alarm."""

    name: str
    metric: cloudwatch.Metric | cloudwatch.MathExpression
    threshold: float
    description: str
    periods: int = 1
    """Bad periods one after the other that raise it."""


class DeliveryStreamAlarms:
    """The alarms of all delivery streams of a stage, by the metrics that Firehose and Kinesis write.

    Names, dimension, statistics and units: Amazon Data Firehose Developer Guide, "Monitor Amazon Data Firehose with
    CloudWatch metrics" (``DeliveryToS3.DataFreshness`` in seconds, ``KinesisMillisBehindLatest`` in milliseconds,
    ``KafkaOffsetLag`` and ``DataReadFromSource.Records`` as counts, all by ``DeliveryStreamName``).
    """

    def __init__(self, records: Sequence[RecordsRule], names: StackNames) -> None:
        self._records = records
        self._names = names

    def of_stage(self, own: OwnMetrics) -> Iterator[DeliveryStreamAlarm]:
        """What has to be an alarm of the stack."""
        for record in self._records:
            yield DeliveryStreamAlarm(
                f"RecordsLate-{record.name}",
                self._metric(record, "DeliveryToS3.DataFreshness"),
                LATE.to_seconds() + record.buffer_seconds,
                f"Firehose does not deliver records of {record.name} in time: read its log group.",
            )
            if record.kinesis_stream:
                yield from self._alarms_on_kinesis(record)
            else:
                yield self._alarm_on_kafka(record)
        yield DeliveryStreamAlarm(
            "FailedRecords",
            own.metric("route", "FailedRecordFiles"),
            1,
            "Firehose has written records that it could not deliver: 'hybrid-router failures' lists them.",
        )

    def _alarms_on_kinesis(self, record: RecordsRule) -> Iterator[DeliveryStreamAlarm]:
        yield DeliveryStreamAlarm(
            f"RecordsBehind-{record.name}",
            self._metric(record, "KinesisMillisBehindLatest"),
            LATE.to_milliseconds(),
            f"Firehose reads the Kinesis stream of {record.name} too slowly: see its throttles.",
        )
        put = _metric("AWS/Kinesis", "IncomingRecords", "StreamName", record.kinesis_stream.rpartition("/")[2], "Sum")
        # A delivery stream that may not read its source writes none of its metrics.
        unread = cloudwatch.MathExpression(
            expression="IF(FILL(put, 0) > 0 AND FILL(taken, 0) == 0, 1, 0)",
            using_metrics={"put": put, "taken": self._metric(record, "DataReadFromKinesisStream.Records", "Sum")},
            period=METRIC_PERIOD,
        )
        yield DeliveryStreamAlarm(
            f"RecordsUnread-{record.name}",
            unread,
            1,
            f"Records are put into the Kinesis stream of {record.name}, and Firehose reads none: read its log group.",
            periods=LATE_PERIODS,
        )

    def _alarm_on_kafka(self, record: RecordsRule) -> DeliveryStreamAlarm:
        """On a lag that Firehose needs longer than ``LATE`` to read.

        CloudWatch gives the lag in messages, and no number of them is too many for every topic. So it is compared with
        what is read of the whole topic. AWS does not say whether the lag is that of one partition; if it is, a topic
        with many partitions is told later.
        """
        behind = cloudwatch.MathExpression(
            expression=f"IF(lag > {LATE_PERIODS} * FILL(taken, 0), 1, 0)",
            using_metrics={
                "lag": self._metric(record, "KafkaOffsetLag"),
                "taken": self._metric(record, "DataReadFromSource.Records", "Sum"),
            },
            period=METRIC_PERIOD,
        )
        return DeliveryStreamAlarm(
            f"RecordsBehind-{record.name}",
            behind,
            1,
            f"Firehose reads the Kafka topic of {record.name} too slowly: read its log group.",
            periods=LATE_PERIODS,
        )

    def _metric(self, record: RecordsRule, name: str, statistic: str = "Maximum") -> cloudwatch.Metric:
        stream = self._names.delivery_stream(record.name)
        return _metric("AWS/Firehose", name, "DeliveryStreamName", stream, statistic)


def _metric(namespace: str, name: str, dimension: str, value: str, statistic: str) -> cloudwatch.Metric:
    return cloudwatch.Metric(
        namespace=namespace,
        metric_name=name,
        dimensions_map={dimension: value},
        statistic=statistic,
        period=METRIC_PERIOD,
    )
