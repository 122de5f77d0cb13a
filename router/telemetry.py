"""Structured logs and EMF metrics of the control plane; service and namespace come from the environment."""

from __future__ import annotations

from aws_lambda_powertools import Logger, Metrics
from aws_lambda_powertools.metrics import MetricUnit

logger = Logger()
metrics = Metrics()


def count(name: str, value: float) -> None:
    """Add a count to the metrics of this invocation."""
    metrics.add_metric(name=name, unit=MetricUnit.Count, value=value)


def count_bytes(name: str, value: float) -> None:
    """Add a number of bytes to the metrics of this invocation."""
    metrics.add_metric(name=name, unit=MetricUnit.Bytes, value=value)
