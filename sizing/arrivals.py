"""Arrivals of a day, by the windows in which events are collected: files that are alike are counted, not made."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import product
from typing import Protocol
from zoneinfo import ZoneInfo

from lake.errors import InvalidInputError
from lake.settings import Settings
from sizing.profile import Profile, file_keys

DAY_SECONDS = 86_400
_PHASE = (math.sqrt(5) - 1) / 2
"""Multiples of it spread most evenly: files of different kinds do not all arrive in the same window."""


@dataclass(frozen=True, slots=True)
class FileGroup:
    """Files of one window that are alike.

    Where a profile has many datasets, one stands for several: their files are in one group.
    """

    key: str
    """The key of any of them: lane and dataset follow from it."""
    bytes: int
    """Of each, as stored."""
    count: int
    datasets: int = 1
    """Number of datasets that the key's one stands for, each with its share of all files."""


def windows_of_day(settings: Settings) -> int:
    """Number of the windows of ``input.event_window_seconds`` of a day; the last one may be shorter."""
    return -(-DAY_SECONDS // settings.input.event_window_seconds)


class Arrivals(Protocol):
    """The files of the 24 hours before a night."""

    @property
    def night(self) -> datetime:
        """Start of the night, aware: the end of the day."""
        ...

    def windows(self) -> Iterator[Sequence[FileGroup]]:
        """The groups of each of the day's windows, in order of time."""
        ...


@dataclass(frozen=True, slots=True)
class _Class:
    key: str
    bytes: int
    files: int
    phase: float
    datasets: int


class ProfileArrivals:
    """Arrivals of a profile: spread evenly over the curve; the same at every call."""

    def __init__(self, profile: Profile, settings: Settings, night: datetime) -> None:
        self.night = night
        self._cumulated = _cumulated(profile, settings, night)
        self._classes = _classes(profile, settings)

    def windows(self) -> Iterator[Sequence[FileGroup]]:
        """The groups of each of the day's windows, in order of time."""
        before = [math.floor(item.phase) for item in self._classes]
        for share in self._cumulated:
            groups = []
            for number, item in enumerate(self._classes):
                after = item.files if share >= 1 else min(math.floor(item.files * share + item.phase), item.files)
                if after > before[number]:
                    groups.append(FileGroup(item.key, item.bytes, after - before[number], item.datasets))
                    before[number] = after
            yield groups


def _classes(profile: Profile, settings: Settings) -> list[_Class]:
    """All kinds of files with their number; the numbers add up to ``profile.files``."""
    total = sum(size.share for size in profile.sizes)
    followed = divide(profile.datasets, [1.0] * profile.followed)
    kinds = [
        (dataset, urgent, compressed, size.bytes, share)
        for dataset, size, (urgent, urgent_share), (compressed, gzip_share) in product(
            range(len(followed)),
            profile.sizes,
            ((False, 1 - profile.urgent_share), (True, profile.urgent_share)),
            ((False, 1 - profile.gzip.share), (True, profile.gzip.share)),
        )
        if (share := size.share / total * followed[dataset] / profile.datasets * urgent_share * gzip_share) > 0
    ]
    keys = file_keys(settings, profile.datasets, len(followed), urgent=profile.urgent_share > 0)
    files = divide(profile.files, [share for *_, share in kinds])
    return [
        _Class(
            keys[dataset, urgent] + (".gz" if compressed else ""), size, count, number * _PHASE % 1, followed[dataset]
        )
        for number, ((dataset, urgent, compressed, size, _), count) in enumerate(zip(kinds, files, strict=True))
    ]


def divide(total: int, shares: Sequence[float]) -> list[int]:
    """Whole numbers in proportion to ``shares`` that add up to ``total``; the largest rests are rounded up."""
    exact = [total * share / sum(shares) for share in shares]
    counts = [math.floor(value) for value in exact]
    by_rest = sorted(range(len(shares)), key=lambda number: counts[number] - exact[number])
    for number in by_rest[: total - sum(counts)]:
        counts[number] += 1
    return counts


def _cumulated(profile: Profile, settings: Settings, night: datetime) -> list[float]:
    """Share of the day's files that has arrived by the end of each window; the last is 1."""
    zone, weights = ZoneInfo(settings.time_zone), []
    length = settings.input.event_window_seconds
    for number in range(windows_of_day(settings)):
        local = (night + timedelta(seconds=(number + 0.5) * length - DAY_SECONDS)).astimezone(zone)
        weights.append(profile.curve[local.hour])
    total, sums = sum(weights), 0.0
    if not total:
        raise InvalidInputError(
            f"profile: curve = {list(profile.curve)!r} is wrong: its hours do not exist on the day before the night of "
            f"{profile.date} in {settings.time_zone}; pass another date"
        )
    shares = []
    for weight in weights:
        sums += weight
        shares.append(sums / total)
    last = max(number for number, weight in enumerate(weights) if weight)
    return [1.0 if number >= last else share for number, share in enumerate(shares)]
