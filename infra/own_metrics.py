"""The metrics that the stage writes itself, as alarms and the dashboard read them."""

from __future__ import annotations

from dataclasses import dataclass

from aws_cdk import Duration
from aws_cdk import aws_cloudwatch as cloudwatch

from lake.shards import FIRST_SHARD

METRIC_PERIOD = Duration.minutes(5)
ANY_FUNCTION = "any"
"""In the place of a function's name: the dimension of a metric that all of them write."""


@dataclass(frozen=True, slots=True)
class OwnMetrics:
    """The metrics of one stage; ``router.telemetry`` has their meaning, a test compares the names."""

    namespace: str

    def metric(
        self,
        function_name: str,
        metric_name: str,
        statistic: str = "Sum",
        period: Duration = METRIC_PERIOD,
        shard: str = FIRST_SHARD,
    ) -> cloudwatch.Metric:
        """A metric that a function writes; that of the stream lane for one shard."""
        of_shard = {} if shard == FIRST_SHARD else {"shard": shard}
        return cloudwatch.Metric(
            namespace=self.namespace,
            metric_name=metric_name,
            dimensions_map={"service": function_name, **of_shard},
            statistic=statistic,
            period=period,
        )
