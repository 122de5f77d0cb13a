"""Latency and backlog over time, in a bounded number of intervals. Pure."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

STEPS = (1, 5, 15, 60, 300, 900, 3600, 21_600, 86_400)
"""Lengths of an interval in seconds; each is a multiple of the one before, so that intervals can be joined."""
MAX_INTERVALS = 120
"""Intervals in which files arrived; when there are more, they are joined to longer ones."""
MAX_CHANGES = 1500
"""Intervals of the backlog, where what comes and goes within one interval is not seen: a day has minutes."""


@dataclass(frozen=True, slots=True)
class Percentiles:
    """Percentiles of a time that files or manifests took, in seconds; three significant digits."""

    files: int
    p50: float
    p90: float
    p99: float
    longest: float


class BacklogPoint(NamedTuple):
    instant: int
    """Seconds since the epoch."""
    files: int
    """Number of files that waited at this instant."""
    bytes: int


class LatencyOverTime:
    """Counts files by interval of their arrival and by latency; its size does not depend on the number of files."""

    def __init__(self) -> None:
        self._step = 0
        self._intervals: dict[int, Counter[float]] = {}

    def add(self, arrived: float, seconds: float, files: int) -> None:
        """Count files that arrived at one instant (seconds since the epoch) and were published after ``seconds``."""
        start = _start(arrived, self._step)
        self._intervals.setdefault(start, Counter())[three_digits(seconds)] += files
        while len(self._intervals) > MAX_INTERVALS and self._step < len(STEPS) - 1:
            self._step += 1
            joined: dict[int, Counter[float]] = {}
            for begin, counts in self._intervals.items():
                joined.setdefault(_start(begin, self._step), Counter()).update(counts)
            self._intervals = joined

    def points(self) -> list[tuple[int, Percentiles]]:
        """The start of each interval, in seconds since the epoch, with the percentiles of files that arrived in it."""
        found = ((start, percentiles(self._intervals[start])) for start in sorted(self._intervals))
        return [(start, figures) for start, figures in found if figures is not None]

    def total(self) -> Percentiles | None:
        """The percentiles of all files; None without files."""
        counts: Counter[float] = Counter()
        for interval in self._intervals.values():
            counts.update(interval)
        return percentiles(counts)


class BacklogOverTime:
    """Adds up what came and what went; its size does not depend on the number of files."""

    def __init__(self) -> None:
        self._step = 0
        self._changes: defaultdict[int, list[int]] = defaultdict(lambda: [0, 0])

    def add(self, instant: float, files: int, size: int) -> None:
        """At ``instant`` (seconds since the epoch) files came, or went where the numbers are negative."""
        _increase(self._changes[_start(instant, self._step)], (files, size))
        while len(self._changes) > MAX_CHANGES and self._step < len(STEPS) - 1:
            self._step += 1
            joined: defaultdict[int, list[int]] = defaultdict(lambda: [0, 0])
            for start, change in self._changes.items():
                _increase(joined[_start(start, self._step)], change)
            self._changes = joined

    def points(self) -> list[BacklogPoint]:
        """What was waiting at the end of each interval in which something changed, after a zero at the start."""
        if not self._changes:
            return []
        length, files, size = STEPS[self._step], 0, 0
        points = [BacklogPoint(min(self._changes), 0, 0)]
        for start in sorted(self._changes):
            files, size = files + self._changes[start][0], size + self._changes[start][1]
            points.append(BacklogPoint(start + length, files, size))
        return points


def three_digits(seconds: float) -> float:
    """Seconds as they are counted; what the clocks of two machines make negative is 0."""
    return float(f"{max(seconds, 0.0):.3g}")


def percentiles(counts: Mapping[float, int]) -> Percentiles | None:
    """Percentiles by nearest rank of files counted by their latency in seconds; None: there are none."""
    files = sum(counts.values())
    if not files:
        return None
    p50, p90, p99, longest = _ranks(counts, [-(-files * share // 100) for share in (50, 90, 99, 100)])
    return Percentiles(files, p50, p90, p99, longest)


def _ranks(counts: Mapping[float, int], ranks: Iterable[int]) -> list[float]:
    """The latency of the file of each rank; ``ranks`` ascend from 1."""
    order = iter(sorted(counts.items()))
    found, passed, value = [], 0, 0.0
    for rank in ranks:
        while passed < rank:
            value, files = next(order)
            passed += files
        found.append(value)
    return found


def _increase(sums: list[int], change: Iterable[int]) -> None:
    for number, value in enumerate(change):
        sums[number] += value


def _start(instant: float, step: int) -> int:
    return int(instant // STEPS[step]) * STEPS[step]
