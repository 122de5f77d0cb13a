"""Forecast of a plan: engine, duration, cost, and whether it ends before the deadline. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from lake.time import iso_utc
from router.estimate.night import last_end, run_dollars

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from router.estimate.choose import Choice
    from router.estimate.night import Night
    from router.estimate.offer import Offer


@dataclass(frozen=True, slots=True)
class Option:
    """The best way of one engine."""

    engine: str
    worker_type: str
    workers: int
    """Workers of each run, the driver's included."""
    concurrency: int
    """Runs side by side."""
    runs: int
    minutes: float
    dollars: float


@dataclass(frozen=True, slots=True)
class Forecast:
    """Expected duration and cost of a plan."""

    minutes: float
    """From its start to the end of the last run."""
    dollars: float
    """Billed time of the runs only."""
    start: str
    """ISO 8601, UTC."""
    end: str
    """ISO 8601, UTC."""
    deadline: str
    """ISO 8601, UTC."""
    fits: bool
    """Whether the last run ends before the deadline, with the margin."""
    late_minutes: float
    """How much later than the deadline it ends; 0: it does not."""
    options: tuple[Option, ...]
    """The best way of each engine, allowed or not, cheapest first."""


def forecast(
    run_core_seconds: Sequence[float], choice: Choice, offer: Offer, start: datetime, deadline: datetime, margin: float
) -> Forecast:
    """Expected duration and cost of runs, in this order, as many side by side as the choice says.

    Parameters
    ----------
    run_core_seconds
        Work of each run, in seconds of one vCPU of Glue.
    margin
        Share of the time until the deadline that stays unused.
    """
    night = choice.night
    seconds = last_end(run_core_seconds, night.workers, night.concurrency, offer)
    dollars = sum(run_dollars(work, night.workers, offer) for work in run_core_seconds)
    allowed = (deadline - start).total_seconds()
    return Forecast(
        minutes=round(seconds / 60, 1),
        dollars=round(dollars, 2),
        start=iso_utc(start),
        end=iso_utc(start + timedelta(seconds=seconds)),
        deadline=iso_utc(deadline),
        fits=seconds <= allowed * (1 - margin),
        late_minutes=round(max(0.0, seconds - allowed) / 60, 1),
        options=tuple(map(_option, choice.options)),
    )


def _option(night: Night) -> Option:
    return Option(
        night.engine.value,
        night.worker_type,
        night.workers,
        night.concurrency,
        night.runs,
        round(night.seconds / 60, 1),
        round(night.dollars, 2),
    )
