"""Forecast of a plan: duration, cost, and whether it ends before the deadline. Pure."""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from lake.engines import Engine
from lake.settings.workers import DPUS, MEMORY_GIB, WORKERS
from lake.time import next_local_time

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from lake.settings import Settings
    from router.plan.pack import PlannedRun

START_SECONDS = 60.0
"""Assumed start of a job run, not billed, before it converts anything."""
MIN_BILLED_SECONDS = 60.0
"""Glue bills at least one minute per run, EMR Serverless per worker (AWS Glue pricing, Amazon EMR pricing)."""
MEGABYTE = 1_000_000


@dataclass(frozen=True, slots=True)
class Forecast:
    """Expected duration and cost of a plan."""

    minutes: float
    """From now to the end of the last run."""
    dollars: float
    """Billed time of the job runs only."""
    deadline: str
    """ISO 8601, UTC."""
    fits: bool
    """Whether the last run ends before the deadline."""


def forecast(
    runs: Sequence[PlannedRun], settings: Settings, speeds: Mapping[str, float], now: datetime, engine: Engine
) -> Forecast:
    """Expected duration and cost from ``now`` (aware) on, with all job runs on ``engine``.

    ``speeds`` are measured input bytes per second and core by dataset; ``price.mb_per_second_per_core`` replaces
    missing ones. All workers but the driver's convert; as many runs as the settings allow on this engine work in
    parallel, longest first.
    """
    seconds = [_run_seconds(run, settings, speeds) for run in runs]
    busy_until = [0.0] * min(settings.max_parallel_runs(engine), max(len(runs), 1))
    for duration in sorted(seconds, reverse=True):
        heapq.heapreplace(busy_until, busy_until[0] + START_SECONDS + duration)
    total = max(busy_until)
    billed = sum(max(duration, MIN_BILLED_SECONDS) for duration in seconds)
    deadline = next_local_time(settings.schedule.deadline, settings.time_zone, now)
    return Forecast(
        minutes=round(total / 60, 1),
        dollars=round(billed / 3600 * run_dollars_per_hour(settings, engine), 2),
        deadline=deadline.isoformat(timespec="minutes"),
        fits=now + timedelta(seconds=total) <= deadline,
    )


def run_dollars_per_hour(settings: Settings, engine: Engine) -> float:
    """Price of one hour of a job run with all of its workers on ``engine``."""
    batch, price = settings.batch, settings.price
    if engine == Engine.EMR_SERVERLESS:
        vcpus, gigabytes = WORKERS[batch.worker_type], MEMORY_GIB[batch.worker_type]
        return batch.workers * (vcpus * price.emr_vcpu_hour + gigabytes * price.emr_gb_hour)
    dpu_hour = price.dpu_hour_flex if engine == Engine.GLUE_FLEX else price.dpu_hour
    return batch.workers * DPUS[batch.worker_type] * dpu_hour


def _run_seconds(run: PlannedRun, settings: Settings, speeds: Mapping[str, float]) -> float:
    batch = settings.batch
    cores = (batch.workers - 1) * WORKERS[batch.worker_type]
    assumed = settings.price.mb_per_second_per_core * MEGABYTE
    return sum(row.bytes / speeds.get(row.partition.dataset, assumed) for row in run.manifests) / cores
