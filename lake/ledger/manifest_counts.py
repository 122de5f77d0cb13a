"""What manifests add up to: by their state, and what the DONE ones have published. Pure."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from lake.ledger.manifest_row import State

if TYPE_CHECKING:
    from lake.ledger.manifest_row import ManifestRow
    from lake.ledger.published_totals import PublishedTotals


@dataclass(slots=True, kw_only=True)
class ManifestCounts:
    """Its size depends on the reasons of rejects, and not on the number of manifests."""

    done: int = 0
    failed: int = 0
    open: int = 0
    rows: int = 0
    rejects: Counter[str] = field(default_factory=Counter)
    """Quarantined lines by reason."""
    failed_files: int = 0
    """Files that could not be read as a whole."""

    def count_state(self, row: ManifestRow) -> None:
        """Count a manifest by its current row; one that is SUPERSEDED or ABANDONED counts nothing."""
        self.done += row.state == State.DONE
        self.failed += row.state == State.FAILED
        self.open += row.open

    def count_totals(self, totals: PublishedTotals) -> None:
        """Add what a DONE manifest has published."""
        self.rows += totals.rows
        self.rejects.update({reason: lines for reason, lines in totals.rejects.items() if lines})
        self.failed_files += totals.failed_files


@dataclass(slots=True, kw_only=True)
class ConvertedCounts(ManifestCounts):
    """With what a share of the quarantine is a share of."""

    files: int = 0
    """Of the DONE manifests."""

    @property
    def quarantined_share(self) -> float:
        """Quarantined lines of all lines, or unreadable files of all files: the larger share, from 0 to 1."""
        lines = self.rows + self.rejects.total()
        by_lines = self.rejects.total() / lines if lines else 0.0
        return max(by_lines, self.failed_files / self.files if self.files else 0.0)

    def count_converted(self, row: ManifestRow, totals: PublishedTotals) -> None:
        """Add a DONE manifest with what it has published."""
        self.files += row.files
        self.count_totals(totals)
