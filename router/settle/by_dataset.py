"""What an execution has come to for each dataset. Pure."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from lake.ledger import ConvertedCounts

if TYPE_CHECKING:
    from lake.ledger import ManifestRow, PublishedTotals

MAX_NAMED_DATASETS = 200
"""Maximum number of datasets in a verdict document; those with the most quarantined lines come first."""


@dataclass(slots=True, kw_only=True)
class DatasetTally(ConvertedCounts):
    """The manifests of one dataset; files, bytes and lines are those of its DONE ones."""

    dataset: str
    bytes: int = 0
    """Of the files, as stored."""


class DatasetTallies:
    """One tally for each dataset of an execution."""

    def __init__(self) -> None:
        self._tallies: dict[str, DatasetTally] = {}

    def add(self, row: ManifestRow) -> None:
        """Add the current row of a manifest."""
        self._of(row).count_state(row)

    def add_totals(self, row: ManifestRow, totals: PublishedTotals) -> None:
        """Add what a DONE manifest has published."""
        tally = self._of(row)
        tally.bytes += row.bytes
        tally.count_converted(row, totals)

    def above(self, share: float) -> list[DatasetTally]:
        """Datasets of which more than ``share`` is in the quarantine, the largest share first."""
        found = [tally for tally in self._tallies.values() if tally.quarantined_share > share]
        return sorted(found, key=lambda tally: (-tally.quarantined_share, tally.dataset))

    def to_json(self) -> list[dict[str, Any]]:
        """The list of the verdict document."""
        order = sorted(self._tallies.values(), key=lambda tally: (-tally.rejects.total(), -tally.bytes, tally.dataset))
        return [
            {**asdict(tally), "rejects": dict(sorted(tally.rejects.items()))} for tally in order[:MAX_NAMED_DATASETS]
        ]

    def _of(self, row: ManifestRow) -> DatasetTally:
        dataset = row.partition.dataset
        return self._tallies.setdefault(dataset, DatasetTally(dataset=dataset))
