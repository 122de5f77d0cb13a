"""Manifests to runs: pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from lake.ledger import ManifestRow
    from lake.settings import BatchSettings


@dataclass(frozen=True, slots=True)
class Run:
    """The manifests of one Glue run."""

    manifests: tuple[ManifestRow, ...]

    @property
    def bytes(self) -> int:
        """Input bytes."""
        return sum(row.bytes for row in self.manifests)

    @property
    def files(self) -> int:
        """Input files."""
        return sum(row.files for row in self.manifests)


def pack(rows: Iterable[ManifestRow], limits: BatchSettings) -> list[Run]:
    """Runs of at most ``run_bytes`` and ``run_manifests``; a larger manifest has a run of its own.

    Largest first, each into the first run it fits in: every manifest is in exactly one run.
    """
    runs: list[list[ManifestRow]] = []
    sizes: list[int] = []
    for row in sorted(rows, key=lambda row: (-row.bytes, row.id)):
        for number, size in enumerate(sizes):
            if size + row.bytes <= limits.run_bytes and len(runs[number]) < limits.run_manifests:
                runs[number].append(row)
                sizes[number] += row.bytes
                break
        else:
            runs.append([row])
            sizes.append(row.bytes)
    return [Run(tuple(rows)) for rows in runs]
