"""Times of a simulated night besides those of its files: the defaults are those of AWS."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import timedelta
from typing import TYPE_CHECKING

from router.estimate.night import DRIVERS

if TYPE_CHECKING:
    from router.estimate.offer import Offer, RunTimes

PLAN_SECONDS = 30.0
"""Assumed: from the schedule until the first runs are started, without merging."""
SETTLE_SECONDS = 60.0
"""Assumed: from the end of the last run until the verdict."""

SWEEP_INTERVAL = timedelta(minutes=15)
"""Between two starts of ``sweep`` (infra/schedules.py)."""
SWEEPS_PER_HOUR = timedelta(hours=1) // SWEEP_INTERVAL


@dataclass(frozen=True, slots=True)
class RunMachine:
    """What job runs run on where it is not an engine of AWS, such as the local cloud."""

    cores: float
    """Cores that convert, of each run."""
    start_seconds: float
    times: RunTimes


@dataclass(frozen=True, slots=True)
class NightTimes:
    """Times of a night."""

    plan_seconds: float = PLAN_SECONDS
    settle_seconds: float = SETTLE_SECONDS
    machine: RunMachine | None = None
    """None: the engine that the plan has chosen."""

    def of_runs(self, offer: Offer, workers: int) -> Offer:
        """The offer with the times and the cores that runs of so many workers really have."""
        if self.machine is None:
            return offer
        return replace(
            offer,
            start_seconds=self.machine.start_seconds,
            wait_seconds=0.0,
            speed_factor=self.machine.cores / ((workers - DRIVERS) * offer.vcpus),
            times=self.machine.times,
        )


AWS_NIGHT = NightTimes()
