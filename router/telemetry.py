"""Structured logs and EMF metrics of the control plane; service and namespace come from the environment.

CloudWatch bills each metric by the month, so metrics exist only for alarms and the dashboard. Every other count is a
field of a log line.
"""

from enum import StrEnum

from aws_lambda_powertools import Logger, Metrics
from aws_lambda_powertools.metrics import MetricUnit

logger = Logger()
metrics = Metrics()


class Metric(StrEnum):
    """Name of a metric; its dimension is the function that writes it."""

    STREAM_BYTES = "StreamBytes"
    """Bytes of the arrivals that ``route`` put into the stream lane."""
    BATCH_BYTES = "BatchBytes"
    """Bytes of the arrivals that ``route`` put into the batch lane."""
    FILES_BEYOND_DATASET_LIMIT = "FilesBeyondDatasetLimit"
    """Arrivals that ``route`` recorded as IGNORED because ``max_datasets`` has no room for their dataset."""
    UNROUTED_SECONDS = "UnroutedSeconds"
    """Age of the oldest event that ``route`` left to be redelivered, in seconds; written only if there is one."""
    ARRIVALS = "Arrivals"
    """Arrivals whose events ``route`` received."""
    IGNORED_FILES = "IgnoredFiles"
    """Arrivals that ``route`` recorded as IGNORED, except names that begin with _ or a dot; written only if there are
    any."""
    FAILED_RECORD_FILES = "FailedRecordFiles"
    """Files with records that Firehose could not deliver, found by ``route``; written only if there are any."""
    STREAM_RUNNING = "StreamRunning"
    """1 if ``stream_control`` finds a run of each streaming job, else 0."""
    STREAM_BACKLOG_BYTES = "StreamBacklogBytes"
    """Bytes of the open manifests of the stream lane."""
    STREAM_SPILLING = "StreamSpilling"
    """1 while peak files go to the batch lane because the stream's backlog exceeds its latency goal, else 0."""
    MICRO_BATCH_MINUTES = "MicroBatchMinutes"
    """Minutes that the longest current micro-batch of the stream lane has taken; 0 if there is none."""
    STREAM_OLDEST_MINUTES = "StreamOldestMinutes"
    """Age of the oldest open manifest of the stream lane, in minutes; 0 if none is open."""
    STREAM_SILENT = "StreamSilent"
    """Shards of the stream lane with an open window whose run does not report that it is alive."""
    PLAN_LATE_MINUTES = "PlanLateMinutes"
    """Minutes by which a plan ends after its deadline; 0 if it ends in time."""
    NIGHT_LATE_MINUTES = "NightLateMinutes"
    """Minutes by which an execution is expected to end late, estimated when its job runs end; 0 if in time."""
    FAILED_MANIFESTS = "FailedManifests"
    """Manifests of an execution that ended FAILED."""
    OPEN_MANIFESTS = "OpenManifests"
    """Manifests of an execution that are open at its end."""
    FAILED_FILES = "FailedFiles"
    """Files of an execution that could not be read as a whole."""
    REJECTED_LINES = "RejectedLines"
    """Lines of an execution that could not become a row."""
    DATASETS_ABOVE_QUARANTINED_SHARE = "DatasetsAboveQuarantinedShare"
    """Datasets of an execution with a larger share in the quarantine than ``alarms.max_quarantined_share``."""
    HOURS_ABOVE_QUARANTINED_SHARE = "HoursAboveQuarantinedShare"
    """Complete hours with a larger share of the stream lane in quarantine than ``alarms.max_quarantined_share``."""
    SWEEP_VANISHED = "SweepVanished"
    """Manifests whose publish the sweep could not finish."""
    SWEEP_STALLED = "SweepStalled"
    """Manifests that have been open for longer than ``schedule.settled_after``."""
    TABLES_BEHIND_MINUTES = "TablesBehindMinutes"
    """Age of the oldest publish that its Iceberg table does not show, in minutes; 0 if all tables show everything."""
    DAY_DOLLARS = "DayDollars"
    """Dollars of the job runs that ended on this day (UTC), as found by ``sweep``."""


def count(metric: Metric, value: float) -> None:
    metrics.add_metric(name=metric.value, unit=MetricUnit.Count, value=value)


def count_bytes(metric: Metric, value: float) -> None:
    metrics.add_metric(name=metric.value, unit=MetricUnit.Bytes, value=value)
