"""Alarms on the delivery streams of ``[[records]]``: one for each, and one on what could not be delivered."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from aws_cdk import Duration
from aws_cdk import aws_cloudwatch as cloudwatch

from infra.names import StackNames
from infra.own_metrics import METRIC_PERIOD, OwnMetrics
from infra.plain_alarm import PlainAlarm
from lake.settings import RecordsRule

LATE = Duration.minutes(15)
"""A record that waits in Firehose for this time in addition to the buffer's, or in its Kinesis stream, raises an alarm;
AWS recommends one above the largest buffer
(https://docs.aws.amazon.com/firehose/latest/dev/firehose-cloudwatch-metrics-best-practices.html)."""
LATE_PERIODS = round(LATE.to_seconds() / METRIC_PERIOD.to_seconds())


class DeliveryStreamAlarms:
    """The alarms of all delivery streams of a stage, by the metrics that Firehose and Kinesis write.

    Names, dimension, statistics and units: Amazon Data Firehose Developer Guide, "Monitor Amazon Data Firehose with
    CloudWatch metrics" (``DeliveryToS3.DataFreshness`` in seconds, ``KinesisMillisBehindLatest`` in milliseconds,
    ``KafkaOffsetLag`` and ``DataReadFromSource.Records`` as counts, all by ``DeliveryStreamName``).
    """

    def __init__(self, records: Sequence[RecordsRule], names: StackNames) -> None:
        self._records = records
        self._names = names

    def of_stage(self, own: OwnMetrics) -> Iterator[PlainAlarm]:
        """Every alarm of the stage."""
        for record in self._records:
            late = f"FILL(freshness, 0) >= {LATE.to_seconds() + record.buffer_seconds:.0f}"
            unread, metrics = self._of_kinesis(record) if record.kinesis_stream else self._of_kafka(record)
            metrics["freshness"] = self._metric(record, "DeliveryToS3.DataFreshness")
            yield PlainAlarm(
                f"RecordsLate-{record.name}",
                cloudwatch.MathExpression(
                    expression=f"IF({late} OR {unread}, 1, 0)", using_metrics=metrics, period=METRIC_PERIOD
                ),
                1,
                f"Firehose does not read or deliver the records of {record.name} in time: see its log group.",
                datapoints=(LATE_PERIODS, LATE_PERIODS),
            )
        yield PlainAlarm(
            "FailedRecords",
            own.metric("route", "FailedRecordFiles"),
            1,
            "Firehose has written records that it could not deliver: 'hybrid-router failures' lists them.",
        )

    def _of_kinesis(self, record: RecordsRule) -> tuple[str, dict[str, cloudwatch.IMetric]]:
        """Firehose is behind in the stream, or reads nothing of what is put into it.

        A delivery stream that may not read its source writes none of its metrics.
        """
        stream = record.kinesis_stream.rpartition("/")[2]
        expression = f"FILL(behind, 0) >= {LATE.to_milliseconds():.0f} OR (FILL(put, 0) > 0 AND FILL(taken, 0) == 0)"
        return expression, {
            "behind": self._metric(record, "KinesisMillisBehindLatest"),
            "put": _metric("AWS/Kinesis", "IncomingRecords", "StreamName", stream, "Sum"),
            "taken": self._metric(record, "DataReadFromKinesisStream.Records", "Sum"),
        }

    def _of_kafka(self, record: RecordsRule) -> tuple[str, dict[str, cloudwatch.IMetric]]:
        """Firehose needs longer than ``LATE`` to read the lag.

        CloudWatch gives the lag in messages, and no number of them is too many for every topic. So it is compared with
        what is read of the whole topic. AWS does not document whether the lag is that of one partition; if it is, the
        alarm comes later for a topic with many partitions.
        """
        return f"FILL(lag, 0) > {LATE_PERIODS} * FILL(taken, 0)", {
            "lag": self._metric(record, "KafkaOffsetLag"),
            "taken": self._metric(record, "DataReadFromSource.Records", "Sum"),
        }

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
