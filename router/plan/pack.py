"""Manifests to runs. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

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

    Every manifest is in exactly one run. First-fit decreasing by size.
    """
    runs: list[list[ManifestRow]] = []
    sizes: list[int] = []
    files: list[int] = []
    for row in sorted(rows, key=lambda row: (-row.bytes, row.id)):
        for number, size in enumerate(sizes):
            fits = size + row.bytes <= limits.run_bytes and files[number] + row.files <= limits.run_files
            if fits and len(runs[number]) < limits.run_manifests:
                runs[number].append(row)
                sizes[number] += row.bytes
                files[number] += row.files
                break
        else:
            runs.append([row])
            sizes.append(row.bytes)
            files.append(row.files)
    return [PlannedRun(tuple(rows)) for rows in runs]
