"""How long job runs wait until they are billed: what the last executions measured of each engine."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from statistics import median
from typing import Any

from lake.ledger import CostRow, Ledger

WAITS_OF = timedelta(days=7)
"""Executions that were planned before are not asked: capacity changes."""


def measured_waits(costs: Iterable[CostRow]) -> dict[str, int]:
    """By engine: median of the seconds between the start of a job run and its first billed second. Pure.

    Waiting for Flex capacity and the start of the run are in it. A run of which no second is billed waited in vain.
    """
    found: defaultdict[str, list[float]] = defaultdict(list)
    for row in costs:
        if row.seconds:
            found[row.engine].append(max(row.end - row.start - row.seconds, 0.0))
    return {engine: round(median(waits)) for engine, waits in found.items()}


def recent_waits(ledger: Ledger, now: datetime) -> dict[str, float]:
    """What ``offers`` takes: by engine, the seconds that job runs of the last executions waited; ``now`` is aware."""
    today = now.astimezone(UTC).date()
    return median_waits(ledger.executions.settled(today - WAITS_OF, today))


def median_waits(settled: Iterable[Mapping[str, Any]]) -> dict[str, float]:
    """By engine: median over executions; ``settled`` is what ``Executions.settled`` has. Pure."""
    found: defaultdict[str, list[float]] = defaultdict(list)
    for facts in settled:
        for engine, seconds in facts.get("waits", {}).items():
            found[engine].append(seconds)
    return {engine: median(waits) for engine, waits in found.items()}
