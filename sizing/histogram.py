"""Latencies of many files."""

from __future__ import annotations

from collections import defaultdict

ROUNDING = 1e-6
"""Files, by which the shares of a file may miss one."""


class Latencies:
    """Seconds from arrival to publication, counted by tenths of a second."""

    def __init__(self) -> None:
        self.files = 0
        """Number of files."""
        self._shares: defaultdict[int, float] = defaultdict(float)
        """Files by tenths of a second; a file whose latency is only known within limits has a share of each second."""

    def add(self, seconds: float, files: int, spread: float = 0.0) -> None:
        """Count ``files`` whose latencies are ``seconds`` on average, evenly from half of ``spread`` less to as much
        more, by whole seconds.
        """
        self.files += files
        parts = max(round(spread), 1)
        for part in range(parts):
            offset = spread * ((part + 0.5) / parts - 0.5)
            self._shares[round(10 * (seconds + offset))] += files / parts

    def percentile(self, share: float) -> float | None:
        """Smallest number of seconds in which this share (0 to 1) of the files was published; None: there are none."""
        left, found = share * self.files - ROUNDING, None
        for tenths in sorted(self._shares):
            found = tenths / 10
            left -= self._shares[tenths]
            if left <= 0:
                break
        return found
