"""The pace of writes to one partition key of the index of open manifests."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

MAX_INDEX_WRITES_PER_SECOND = 800
"""A partition key takes 1,000 write units a second, and an index that is throttled throttles its table (Amazon DynamoDB
Developer Guide, "Best practices for partition keys", "Global secondary indexes"); the rest is left to route."""


class WritePace:
    """Lets the threads of one invocation write at most ``per_second`` on average; thread-safe.

    Parameters
    ----------
    per_second
        Writes of one item each.
    now, wait
        Seconds of a clock that only goes forward, and the pause for a number of them.
    """

    def __init__(
        self,
        per_second: float = MAX_INDEX_WRITES_PER_SECOND,
        now: Callable[[], float] = time.monotonic,
        wait: Callable[[float], object] = time.sleep,
    ) -> None:
        self._per_second = per_second
        self._now, self._wait = now, wait
        self._lock = threading.Lock()
        self._next = now()

    def take(self, writes: int) -> None:
        """Return when the caller may send ``writes`` writes of one item each."""
        with self._lock:
            start = max(self._now(), self._next)
            self._next = start + writes / self._per_second
        pause = start - self._now()
        if pause > 0:
            self._wait(pause)
