"""Attempts to portions, each for one Spark job. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from transform.plan_attempt import Attempt


def divide_into_portions(attempts: Sequence[Attempt], count: int) -> list[list[Attempt]]:
    """At most ``count`` portions of about the same number of tasks, in order; none is empty.

    An attempt is never divided: its manifest is committed as a whole.
    """
    tasks_per_portion = math.ceil(sum(len(attempt.tasks) for attempt in attempts) / count)
    portions: list[list[Attempt]] = []
    tasks = 0
    for attempt in attempts:
        if not portions or tasks >= tasks_per_portion:
            portions.append([])
            tasks = 0
        portions[-1].append(attempt)
        tasks += len(attempt.tasks)
    return portions
