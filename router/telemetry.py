"""Structured logs and EMF metrics of the control plane; service and namespace come from the environment.

CloudWatch bills each metric by the month, so only those exist that an alarm or the dashboard reads; every other count
is a field of a log line.
"""

from __future__ import annotations

from enum import StrEnum

from aws_lambda_powertools import Logger, Metrics, single_metric
from aws_lambda_powertools.metrics import MetricUnit

from lake.shards import FIRST_SHARD

logger = Logger()
metrics = Metrics()
ANY_FUNCTION = "any"
"""In the place of a function's name: the dimension of a metric that all of them write."""


class Metric(StrEnum):
    """Name of a metric; its dimension is the function that writes it, or ``ANY_FUNCTION``.

    Those of the stream lane exist for each shard: that of the first one has no other dimension.
    """

    STREAM_BYTES = "StreamBytes"
    """Bytes of the arrivals that ``route`` has put into the stream lane."""
    BATCH_BYTES = "BatchBytes"
    """Bytes of the arrivals that ``route`` has put into the batch lane."""
    FILES_BEYOND_DATASET_LIMIT = "FilesBeyondDatasetLimit"
    """Arrivals that ``route`` has recorded as IGNORED because ``max_datasets`` has no room for their dataset."""
    FAILED_RECORD_FILES = "FailedRecordFiles"
    """Files in which ``route`` has found records that Firehose could not deliver; written when there are any."""
    STREAM_RUNNING = "StreamRunning"
    """1 while ``stream_control`` finds a run of the streaming job, else 0."""
    STREAM_BACKLOG_BYTES = "StreamBacklogBytes"
    """Bytes of the open manifests of the stream lane."""
    STREAM_SPILLING = "StreamSpilling"
    """1 while peak files go to the batch lane because the stream's backlog exceeds its latency goal, else 0."""
    MICRO_BATCH_MINUTES = "MicroBatchMinutes"
    """How long the current micro-batch of the stream lane has taken until now, in minutes; 0: there is none."""
    STREAM_OLDEST_MINUTES = "StreamOldestMinutes"
    """Age of the oldest open manifest of the stream lane, in minutes; 0: none is open."""
    STREAM_SILENT = "StreamSilent"
    """1 while the stream's window is open and no run of the streaming job reports that it is alive, else 0."""
    PLAN_LATE_MINUTES = "PlanLateMinutes"
    """Minutes by which a plan ends after its deadline; 0: it ends in time."""
    NIGHT_LATE_MINUTES = "NightLateMinutes"
    """Minutes by which an execution is expected to end after its deadline, as its job runs end; 0: in time."""
    FAILED_MANIFESTS = "FailedManifests"
    """Manifests of an execution that ended FAILED."""
    OPEN_MANIFESTS = "OpenManifests"
    """Manifests of an execution that are open at its end."""
    FAILED_FILES = "FailedFiles"
    """Files of an execution that could not be read as a whole."""
    REJECTED_LINES = "RejectedLines"
    """Lines of an execution that could not become a row."""
    DATASETS_ABOVE_QUARANTINED_SHARE = "DatasetsAboveQuarantinedShare"
    """Datasets of an execution of which more is in the quarantine than ``alarms.max_quarantined_share``."""
    HOURS_ABOVE_QUARANTINED_SHARE = "HoursAboveQuarantinedShare"
    """Complete hours of which more from the stream lane is in the quarantine than ``alarms.max_quarantined_share``."""
    SWEEP_VANISHED = "SweepVanished"
    """Manifests whose publish the sweep could not finish."""
    SWEEP_STALLED = "SweepStalled"
    """Manifests that are open for longer than ``sweep.stalled_hours``."""
    DAY_DOLLARS = "DayDollars"
    """Dollars of the job runs that have ended on this day (UTC), as ``sweep`` finds them."""
    SELF_TEST_LOST = "SelfTestLost"
    """1 while the last self-test has not come back from the topic of the alarms, else 0; only where one is sent."""
    LEDGER_REFUSALS = "LedgerRefusals"
    """Invocations that failed because the ledger's table refused them, of each function and of all together; written
    when there are any."""


def count(metric: Metric, value: float, shard: str = FIRST_SHARD) -> None:
    """Add a count to the metrics of this invocation.

    That of a shard other than the first one is written at once, with the shard's name as a dimension.
    """
    _add(metric, MetricUnit.Count, value, shard)


def count_bytes(metric: Metric, value: float, shard: str = FIRST_SHARD) -> None:
    """Add a number of bytes to the metrics of this invocation, as ``count``."""
    _add(metric, MetricUnit.Bytes, value, shard)


def count_for_function_and_all(metric: Metric) -> None:
    """Add 1 to a count of this function, and to that of all functions. Both are written at once, also when the
    invocation fails.
    """
    for service in (metrics.service, ANY_FUNCTION):
        with single_metric(name=metric.value, unit=MetricUnit.Count, value=1, namespace=metrics.namespace) as other:
            other.add_dimension(name="service", value=service)


def _add(metric: Metric, unit: MetricUnit, value: float, shard: str) -> None:
    if shard == FIRST_SHARD:
        metrics.add_metric(name=metric.value, unit=unit, value=value)
        return
    with single_metric(name=metric.value, unit=unit, value=value, namespace=metrics.namespace) as other:
        other.add_dimension(name="shard", value=shard)
