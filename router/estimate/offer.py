"""What one engine offers: its workers, what they cost, and the time around a run's own work."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lake.engines import ENGINES, Engine
from lake.engines.workers import WORKERS

if TYPE_CHECKING:
    from lake.settings import Settings

RAMP_SECONDS = 30.0
"""Assumed: until auto scaling has added the last worker; half of it is lost."""
TAIL_SECONDS = 35.0
"""Assumed: from the first idle core until the last manifest is published and the run has ended."""
TAIL_OF_LONGEST = 0.65
"""The tail of a run whose longest task takes longer than that, as a share of this task: a compressed file is one task,
and the last of them begins at any time. Fitted to five days (tests/unit/sizing/test_own_calculation.py): list
scheduling of single runs gives 0.06 to 0.87."""
MIN_BILLED_SECONDS = 60.0
"""Listed: every engine bills at least one minute (the pricing pages of Glue and EMR Serverless)."""
SHORT_RUN_SECONDS = 600.0
SHORT_POLL_SECONDS = 60.0
LONG_POLL_SECONDS = 300.0
"""Assumed from what users report: ``.sync`` asks every minute in the first ten, then every five. On average a place is
free half an interval before the machine knows it."""


@dataclass(frozen=True, slots=True)
class RunTimes:
    """Time around the work of a run, in seconds; the defaults are those of AWS."""

    ramp: float = RAMP_SECONDS
    tail: float = TAIL_SECONDS
    min_billed: float = MIN_BILLED_SECONDS
    short_poll: float = SHORT_POLL_SECONDS
    """Interval in which the state machine asks for the end of a run of up to ``SHORT_RUN_SECONDS`` ..."""
    long_poll: float = LONG_POLL_SECONDS
    """... and of a longer one."""
    bills_start: bool = False
    """Whether the start is billed."""

    def poll_delay(self, run_seconds: float) -> float:
        """Average time until the state machine notices that a run of this length has ended."""
        return (self.short_poll if run_seconds <= SHORT_RUN_SECONDS else self.long_poll) / 2


AWS_TIMES = RunTimes()


@dataclass(frozen=True, slots=True)
class Offer:
    """Workers of one type on one engine."""

    engine: Engine
    worker_type: str
    """By the names of Glue."""
    vcpus: int
    """vCPUs of a worker; each runs one task at a time."""
    quota_units: float
    """What a worker takes of the engine's quota."""
    dollars_per_hour: float
    """Price of one worker."""
    start_seconds: float
    wait_seconds: float
    """Assumed time in which a run waits for capacity, before it starts."""
    times: RunTimes = AWS_TIMES


def offers(settings: Settings) -> Iterator[Offer]:
    """What each engine offers that has workers of the type ``batch.worker_type``, allowed by the settings or not."""
    worker = settings.batch.worker_type
    for engine in ENGINES.values():
        if worker in engine.worker_types:
            dollars = engine.worker(worker).at(engine.prices(settings))
            units = engine.quota_units(worker)
            yield Offer(engine.name, worker, WORKERS[worker], units, dollars, engine.start_seconds, engine.wait_seconds)
