"""Manifests to runs. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from router.plan.open_runs import OpenRuns

if TYPE_CHECKING:
    from collections.abc import Iterable

    from lake.ledger import ManifestRow
    from lake.settings import BatchSettings


@dataclass(frozen=True, slots=True)
class PlannedRun:
    """The manifests that one Glue run converts."""

    manifests: tuple[ManifestRow, ...]

    @property
    def bytes(self) -> int:
        """Size of its files as stored."""
        return sum(row.bytes for row in self.manifests)

    @property
    def files(self) -> int:
        """Number of its files."""
        return sum(row.files for row in self.manifests)


def pack_runs(rows: Iterable[ManifestRow], limits: BatchSettings) -> list[PlannedRun]:
    """Runs of at most ``run_bytes``, ``run_manifests`` and ``run_files``; a larger manifest gets a run of its own.

    Every manifest is in exactly one run. First-fit decreasing by size, in steps that grow with the logarithm of the
    number of runs.
    """
    runs: list[list[ManifestRow]] = []
    room = OpenRuns()
    for row in sorted(rows, key=lambda row: (-row.bytes, row.id)):
        number = room.first_with(row.bytes, row.files)
        if number is None:
            number = room.add(limits.run_bytes, limits.run_files)
            runs.append([])
        runs[number].append(row)
        room.take(number, row.bytes, row.files)
        if len(runs[number]) == limits.run_manifests:
            room.close(number)
    return [PlannedRun(tuple(rows)) for rows in runs]
