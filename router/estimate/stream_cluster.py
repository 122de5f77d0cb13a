"""The workers of the streaming jobs on their engine: size, price, and how many a quiet stream keeps. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from lake.settings.workers import DPUS, WORKERS
from router.estimate.offer import EMR_START_SECONDS, GLUE_START_SECONDS

if TYPE_CHECKING:
    from lake.settings import Settings

GLUE_MIN_EXECUTORS = 1
"""Assumed: Glue's auto scaling leaves a streaming run one worker besides the driver's."""
VCPUS_OF_A_DPU = 4
"""AWS Glue, "Worker types"."""


@dataclass(frozen=True, slots=True)
class StreamCluster:
    """The driver and the executors of one streaming job."""

    vcpus: int
    """Of an executor; each converts one task at a time."""
    min_executors: int
    driver_dpus: float
    """On EMR Serverless four vCPUs count as one."""
    executor_dpus: float
    driver_dollars: float
    """Price of an hour, in US dollars."""
    executor_dollars: float
    start_seconds: float
    """Assumed: from StartJobRun until the first task runs."""
    speed_factor: float
    """Speed of a vCPU, where 1 is that of Glue's."""

    @property
    def quiet_dollars(self) -> float:
        """Price of an hour in which nothing arrives, in US dollars."""
        return self.driver_dollars + self.min_executors * self.executor_dollars


def stream_cluster(settings: Settings) -> StreamCluster:
    """Those of each streaming job of a stage, by the prices of its settings."""
    stream, price = settings.stream, settings.price
    if not stream.on_emr:
        dpus = DPUS[stream.worker_type]
        dollars = dpus * price.dpu_hour
        vcpus = WORKERS[stream.worker_type]
        return StreamCluster(vcpus, GLUE_MIN_EXECUTORS, dpus, dpus, dollars, dollars, GLUE_START_SECONDS, 1.0)
    vcpu_hour, gb_hour = price.emr_rates(settings.emr.architecture)
    return StreamCluster(
        stream.emr_executor_vcpus,
        stream.emr_min_executors,
        stream.emr_driver_vcpus / VCPUS_OF_A_DPU,
        stream.emr_executor_vcpus / VCPUS_OF_A_DPU,
        stream.emr_driver_vcpus * vcpu_hour + stream.emr_driver_gb * gb_hour,
        stream.emr_executor_vcpus * vcpu_hour + stream.emr_executor_gb * gb_hour,
        EMR_START_SECONDS,
        price.emr_speed_factor,
    )
