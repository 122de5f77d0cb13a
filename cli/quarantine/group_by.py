"""What ``hybrid-router quarantine ls`` sums up by; apart, so that the command line starts without its libraries."""

from __future__ import annotations

from enum import StrEnum


class GroupBy(StrEnum):
    """What ``ls`` sums up by."""

    DATASET = "dataset"
    HOUR = "hour"
    REASON = "reason"
    FILE = "file"
