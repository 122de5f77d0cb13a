"""Latencies of many files, and what was in use or waiting over time."""

from __future__ import annotations

from collections import Counter


class Latencies:
    """Seconds from arrival to publication, counted by whole seconds."""

    def __init__(self) -> None:
        self._files: Counter[int] = Counter()

    def add(self, seconds: float, files: int) -> None:
        """Count ``files`` of this latency."""
        self._files[round(seconds)] += files

    @property
    def files(self) -> int:
        """Number of files."""
        return self._files.total()

    def percentile(self, share: float) -> float | None:
        """Smallest number of seconds in which this share (0 to 1) of the files was published; None: there are none."""
        left = share * self.files
        for seconds in sorted(self._files):
            left -= self._files[seconds]
            if left <= 0:
                return float(seconds)
        return None


class Timeline:
    """Averages over intervals of ``STEP_SECONDS``; times are seconds from the start of the day."""

    STEP_SECONDS = 300

    def __init__(self) -> None:
        self._sums: Counter[int] = Counter()

    def add(self, start: float, end: float, value: float) -> None:
        """Add ``value`` from ``start`` to ``end``."""
        step = self.STEP_SECONDS
        for number in range(int(start // step), int(-(-end // step))):
            overlap = min(end, (number + 1) * step) - max(start, number * step)
            self._sums[number] += value * overlap / step  # type: ignore[assignment]

    def values(self) -> list[float]:
        """Averages from the start of the day on."""
        return [round(float(self._sums[number]), 3) for number in range(max(self._sums, default=-1) + 1)]
