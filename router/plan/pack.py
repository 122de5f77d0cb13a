"""Manifests to runs. Pure."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lake.settings.lanes import RUN_FILES, RUN_MANIFESTS

if TYPE_CHECKING:
    from lake.ledger import ManifestRow
    from lake.settings import BatchSettings

MAX_TRIES = 8
"""Runs that are tried for a manifest before it gets a new one; with all of them, packing would take quadratic time."""


@dataclass(frozen=True, slots=True)
class PlannedRun:
    """The manifests that one job run converts."""

    manifests: tuple[ManifestRow, ...]

    @property
    def bytes(self) -> int:
        """Size of its files as stored."""
        return sum(row.bytes for row in self.manifests)

    @property
    def files(self) -> int:
        """Number of its files."""
        return sum(row.files for row in self.manifests)


class _OpenRun:
    """A run that is being filled."""

    def __init__(self) -> None:
        self.manifests: list[ManifestRow] = []
        self.seconds = 0.0
        self._bytes = 0
        self._files = 0

    def add(self, row: ManifestRow, seconds: float) -> None:
        self.manifests.append(row)
        self.seconds += seconds
        self._bytes += row.bytes
        self._files += row.files

    def has_room(self, row: ManifestRow, limits: BatchSettings) -> bool:
        """An empty run takes any manifest."""
        return not self.manifests or (
            len(self.manifests) < RUN_MANIFESTS
            and self._bytes + row.bytes <= limits.run_bytes
            and self._files + row.files <= RUN_FILES
        )


def pack_evenly(
    rows: Iterable[ManifestRow], limits: BatchSettings, count: int, seconds: Callable[[ManifestRow], float]
) -> list[PlannedRun]:
    """About ``count`` runs that take about the same time; more where the limits of a run demand it.

    Runs have at most ``run_bytes``, ``RUN_MANIFESTS`` and ``RUN_FILES``; a larger manifest has a run of its own. Every
    manifest is in exactly one run. The longest manifest first, each to the run with the least work.
    """
    runs = [_OpenRun() for _ in range(max(count, 1))]
    least = [(0.0, number) for number in range(len(runs))]
    for row in sorted(rows, key=lambda row: (-seconds(row), row.id)):
        tried: list[tuple[float, int]] = []
        while least and len(tried) < MAX_TRIES:
            tried.append(heapq.heappop(least))
            if runs[tried[-1][1]].has_room(row, limits):
                number = tried.pop()[1]
                break
        else:
            number = len(runs)
            runs.append(_OpenRun())
        runs[number].add(row, seconds(row))
        if len(runs[number].manifests) < RUN_MANIFESTS:
            tried.append((runs[number].seconds, number))
        for entry in tried:
            heapq.heappush(least, entry)
    return [PlannedRun(tuple(run.manifests)) for run in runs if run.manifests]


def pack_oldest_first(
    rows: Iterable[ManifestRow], limits: BatchSettings, count: int, seconds: Callable[[ManifestRow], float]
) -> list[PlannedRun]:
    """Like ``pack_evenly``, but each run has older hours than the next: for a night that will not end in time."""
    ordered = sorted(rows, key=lambda row: (row.partition.date, row.partition.hour, row.partition.dataset, row.id))
    share = sum(map(seconds, ordered)) / max(count, 1)
    runs = [_OpenRun()]
    for row in ordered:
        if runs[-1].seconds >= share or not runs[-1].has_room(row, limits):
            runs.append(_OpenRun())
        runs[-1].add(row, seconds(row))
    return [PlannedRun(tuple(run.manifests)) for run in runs if run.manifests]
