"""When peak files spill to the batch lane: by the time that the largest cluster needs for the backlog."""

from __future__ import annotations

from collections.abc import Collection
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from router.estimate.speed import Speeds
from router.services import PARALLEL_REQUESTS, Services

if TYPE_CHECKING:
    from lake.ledger import ManifestRow
    from lake.settings import StreamSettings

LOW_MARK = 0.25
"""Share of the latency goal below which files no longer spill: between the marks nothing changes, so that the lane of
alike files does not change with every watch."""


def is_spilling(settings: StreamSettings, backlog_core_seconds: float, before: bool) -> bool:
    """Whether peak files spill: from more work on than all cores convert within ``stream.latency_goal_seconds``, until
    it is less than ``LOW_MARK`` of that; ``before`` in between. Pure.
    """
    goal = settings.latency_goal_seconds * settings.cores
    if backlog_core_seconds > goal:
        return True
    return before and backlog_core_seconds >= LOW_MARK * goal


def read_core_seconds(services: Services, backlog: Collection[ManifestRow]) -> float:
    """Time of one core of the streaming jobs' engine for the backlog: by the speed that each dataset has measured, else
    by that of the settings.

    One read for each dataset of the backlog.
    """
    settings = services.settings
    names = sorted({row.partition.dataset for row in backlog})
    with ThreadPoolExecutor(PARALLEL_REQUESTS) as pool:
        measured = dict(zip(names, pool.map(services.ledger.datasets.speed, names), strict=True))
    speeds = Speeds(measured, settings.price)
    return sum(map(speeds.core_seconds, backlog))
