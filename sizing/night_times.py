"""Times of a simulated night besides those of its files."""

from __future__ import annotations

from datetime import timedelta

PLAN_SECONDS = 30.0
"""Assumed: from the schedule until the first runs are started, without merging."""
SETTLE_SECONDS = 60.0
"""Assumed: from the end of the last run until the verdict."""

SWEEP_INTERVAL = timedelta(minutes=15)
"""Between two starts of ``sweep`` (infra/schedules.py)."""
SWEEPS_PER_HOUR = timedelta(hours=1) // SWEEP_INTERVAL
