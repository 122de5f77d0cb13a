"""What ``hybrid-router cost`` sums up by; apart, so that the command line starts without its libraries."""

from __future__ import annotations

from enum import StrEnum


class CostBy(StrEnum):
    """What costs are summed up by."""

    DATASET = "dataset"
    LANE = "lane"
    ENGINE = "engine"
    DAY = "day"
