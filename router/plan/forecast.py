"""Forecast of a plan: engine, duration, cost, and whether it ends before the deadline. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import NamedTuple

from lake.time import iso_utc
from router.estimate.night import Choice, Night, Offer, RunWork, last_end, run_dollars
from router.estimate.other_costs import Estimate


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


class SpeedRange(NamedTuple):
    """The work of each run, by how fast S3 is read."""

    fast: Sequence[RunWork]
    expected: Sequence[RunWork]
    slow: Sequence[RunWork]


@dataclass(frozen=True, slots=True)
class Forecast:
    """Expected duration and cost of a plan."""

    minutes: float
    """From its start to the end of the last run."""
    dollars: float
    """Billed time of the runs only."""
    dollars_low: float
    """The same if S3 is read ``FAST`` times as fast as assumed ..."""
    dollars_high: float
    """... or ``SLOW`` times; both are ``dollars`` where the ledger has measured every dataset."""
    minutes_low: float
    minutes_high: float
    other_dollars: float
    """Requests, ledger and functions of the planned manifests."""
    storage_dollars_per_month: float
    """Of what the runs will write, for each month that it is kept."""
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
    works: SpeedRange, other: Estimate, choice: Choice, offer: Offer, start: datetime, deadline: datetime, margin: float
) -> Forecast:
    """Expected duration and cost of runs, in this order, as many side by side as the choice says.

    ``works``: work of each run. ``other``: what the manifests cost besides the runs. ``margin``: share of the time
    until the deadline that stays unused.
    """
    night = choice.night
    ends = [
        last_end(runs, night.workers, night.concurrency, offer) for runs in (works.fast, works.expected, works.slow)
    ]
    prices = [round(sum(run_dollars(work, night.workers, offer) for work in runs), 2) for runs in works]
    (low, seconds, high), (dollars_low, dollars, dollars_high) = ends, prices
    allowed = (deadline - start).total_seconds()
    return Forecast(
        minutes=round(seconds / 60, 1),
        dollars=dollars,
        dollars_low=dollars_low,
        dollars_high=dollars_high,
        minutes_low=round(low / 60, 1),
        minutes_high=round(high / 60, 1),
        other_dollars=round(other.total, 2),
        storage_dollars_per_month=round(other.storage_per_month, 2),
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
