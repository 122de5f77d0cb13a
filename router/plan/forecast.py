"""Forecast of a plan: duration, cost, and whether it ends before the deadline. Pure."""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from lake.settings.workers import DPUS, WORKERS
from lake.time import next_local_time

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from lake.settings import Settings
    from router.plan.pack import PlannedRun

START_SECONDS = 60.0
"""Assumed start of a Glue run, not billed, before it converts anything."""
MIN_BILLED_SECONDS = 60.0
"""Glue bills at least one minute per run (AWS Glue pricing)."""
MEGABYTE = 1_000_000


@dataclass(frozen=True, slots=True)
class Forecast:
    """Expected duration and cost of a plan."""

    minutes: float
    """From now to the end of the last run."""
    dollars: float
    """Billed Glue time only."""
    deadline: str
    """ISO 8601, UTC."""
    fits: bool
    """Whether the last run ends before the deadline."""


def forecast(runs: Sequence[PlannedRun], settings: Settings, speeds: Mapping[str, float], now: datetime) -> Forecast:
    """Expected duration and cost from ``now`` (aware) on.

    ``speeds`` are measured input bytes per second and core by dataset; ``price.mb_per_second_per_core`` replaces
    missing ones. All workers but the driver's convert; ``max_overnight_runs`` runs work in parallel, longest first.
    """
    batch, price = settings.batch, settings.price
    seconds = [_run_seconds(run, settings, speeds) for run in runs]
    busy_until = [0.0] * min(settings.max_overnight_runs, max(len(runs), 1))
    for duration in sorted(seconds, reverse=True):
        heapq.heapreplace(busy_until, busy_until[0] + START_SECONDS + duration)
    total = max(busy_until)
    dpus = batch.workers * DPUS[batch.worker_type]
    dpu_hour = price.dpu_hour_flex if batch.flex else price.dpu_hour
    billed = sum(max(duration, MIN_BILLED_SECONDS) for duration in seconds)
    deadline = next_local_time(settings.schedule.deadline, settings.time_zone, now)
    return Forecast(
        minutes=round(total / 60, 1),
        dollars=round(billed / 3600 * dpus * dpu_hour, 2),
        deadline=deadline.isoformat(timespec="minutes"),
        fits=now + timedelta(seconds=total) <= deadline,
    )


def _run_seconds(run: PlannedRun, settings: Settings, speeds: Mapping[str, float]) -> float:
    batch = settings.batch
    cores = (batch.workers - 1) * WORKERS[batch.worker_type]
    assumed = settings.price.mb_per_second_per_core * MEGABYTE
    return sum(row.bytes / speeds.get(row.partition.dataset, assumed) for row in run.manifests) / cores
