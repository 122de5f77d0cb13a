"""Attempts to portions, each for one Spark job. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from transform.plan_attempt import Attempt


def divide_into_portions(attempts: Sequence[Attempt], count: int) -> list[list[Attempt]]:
    """At most ``count`` portions of about the same number of tasks; none is empty.

    An attempt is never divided: its manifest is committed as a whole. In the batch lane those with the longest task
    come first, as Spark gives free cores to the oldest job: a long task that begins last would end the run alone. The
    stream lane keeps the order, which is that of arrival.
    """
    attempts = sorted(attempts, key=_longest_task, reverse=True)
    tasks_per_portion = math.ceil(sum(len(attempt.tasks) for attempt in attempts) / count)
    portions: list[list[Attempt]] = []
    tasks = 0
    for attempt in attempts:
        if not portions or (tasks >= tasks_per_portion and attempt.tasks):
            portions.append([])
            tasks = 0
        portions[-1].append(attempt)
        tasks += len(attempt.tasks)
    return portions


def _longest_task(attempt: Attempt) -> int:
    """Bytes of NDJSON of its longest task; 0 in the stream lane."""
    return max((task.ndjson_bytes for task in attempt.tasks if task.stream_seconds is None), default=0)
