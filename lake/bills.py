"""What a job run has used, and its price."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lake.engines import Engine, Units

HOUR_MILLISECONDS = 3_600_000
SUCCEEDED = "SUCCEEDED"
"""The only end that is not a failure or a stop, in the words of Glue."""
MAX_REASON = 1500
MICRO = 1_000_000
"""Dollars are kept as whole millionths, so that parts add up to their sum exactly."""


@dataclass(frozen=True, slots=True)
class Bill:
    job_run: str
    """The id by which it held its leases."""
    run: str | None
    """The run document that it was started for; None: it was started without one."""
    engine: Engine
    started_at: datetime
    ended_at: datetime
    seconds: int
    dpu_milliseconds: int = 0
    """DPUs times milliseconds; 0 on an engine that does not bill them. The same holds for vCPUs and GB of memory."""
    vcpu_milliseconds: int = 0
    gb_milliseconds: int = 0
    final: bool = True
    """False: the service does not have all figures yet; missing ones are estimated, or 0."""
    state: str = SUCCEEDED
    """How it ended, in the words of Glue: SUCCEEDED, FAILED, TIMEOUT, STOPPED, ..."""
    reason: str = ""
    """Why it did not succeed, as the service reports it; at most ``MAX_REASON`` characters."""

    def micro_dollars(self, prices: Units) -> int:
        """Its price in millionths of a dollar, by the price of an hour of each unit."""
        dollars = (
            self.dpu_milliseconds * prices.dpu + self.vcpu_milliseconds * prices.vcpu + self.gb_milliseconds * prices.gb
        ) / HOUR_MILLISECONDS
        return round(dollars * MICRO)


def divide(total: int, weights: Sequence[int]) -> list[int]:
    """``total`` in whole parts that are proportional to ``weights`` and add up to it; equal parts if all are 0."""
    if not any(weights):
        weights = [1] * len(weights)
    whole, parts, so_far, given = sum(weights), [], 0, 0
    for weight in weights:
        so_far += weight
        parts.append(total * so_far // whole - given)
        given += parts[-1]
    return parts


def reason_of(state: str, message: str | None) -> str:
    """Why a run in this state, in the words of Glue, did not succeed; ``message`` is from its service."""
    return "" if state == SUCCEEDED else (message or "")[:MAX_REASON]
