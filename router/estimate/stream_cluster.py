"""The workers of the streaming jobs on their engine: size, price, and how many a quiet stream keeps. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from lake.settings.workers import DPUS, EMR_DRIVER_GB, EMR_DRIVER_VCPUS, MEMORY_GIB, WORKERS
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

    @property
    def quiet_dollars(self) -> float:
        """Price of an hour in which nothing arrives, in US dollars."""
        return self.driver_dollars + self.min_executors * self.executor_dollars


def stream_cluster(settings: Settings) -> StreamCluster:
    """The workers of each streaming job of a stage, by the prices of its settings."""
    stream, price = settings.stream, settings.price
    vcpus, dpus = WORKERS[stream.worker_type], DPUS[stream.worker_type]
    if not stream.on_emr:
        dollars = dpus * price.dpu_hour
        return StreamCluster(vcpus, GLUE_MIN_EXECUTORS, dpus, dpus, dollars, dollars, GLUE_START_SECONDS)
    vcpu_hour, gb_hour = price.emr_rates(settings.emr.architecture)
    return StreamCluster(
        vcpus,
        stream.emr_min_executors,
        EMR_DRIVER_VCPUS / VCPUS_OF_A_DPU,
        dpus,
        EMR_DRIVER_VCPUS * vcpu_hour + EMR_DRIVER_GB * gb_hour,
        vcpus * vcpu_hour + MEMORY_GIB[stream.worker_type] * gb_hour,
        EMR_START_SECONDS,
    )
