"""The metrics that the stage writes itself, as alarms and the dashboard read them."""

from __future__ import annotations

from dataclasses import dataclass

from aws_cdk import Duration
from aws_cdk import aws_cloudwatch as cloudwatch

METRIC_PERIOD = Duration.minutes(5)


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
    ) -> cloudwatch.Metric:
        """A metric that a function writes."""
        return cloudwatch.Metric(
            namespace=self.namespace,
            metric_name=metric_name,
            dimensions_map={"service": function_name},
            statistic=statistic,
            period=period,
        )
