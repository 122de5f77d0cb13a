"""Settings of Spark itself: ``spark``."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SparkSettings:
    """What Spark tells about its own work."""

    ui_logs: bool = False
    """Spark's event logs of every job run are kept in the control bucket for 30 days, for ``spark-history``."""
