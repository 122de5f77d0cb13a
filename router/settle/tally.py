"""What the rows of an execution add up to, in all and by dataset, and the few rows that the verdict names. Pure."""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass, field
from datetime import datetime, timedelta
from typing import Any

from lake.ledger import ConvertedCounts, ManifestCounts, ManifestRow, PublishedTotals, State
from router.settle.published import MAX_NAMED_FILES, MAX_NAMED_OBJECTS, Damage, DamagedObject

MAX_NAMED_DATASETS = 200
"""Maximum number of datasets in a verdict document; those with the most quarantined lines come first."""


@dataclass(slots=True, kw_only=True)
class DatasetTally(ConvertedCounts):
    """The manifests of one dataset; files, bytes and lines are those of its DONE ones."""

    dataset: str
    bytes: int = 0
    """Bytes of the files, as stored."""


class DatasetTallies:
    """One tally for each dataset of an execution."""

    def __init__(self) -> None:
        self._tallies: dict[str, DatasetTally] = {}

    def add(self, row: ManifestRow) -> None:
        self._of(row).count_state(row)

    def add_totals(self, row: ManifestRow, totals: PublishedTotals) -> None:
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


PUBLISHER_PRESUMED_DEAD_AFTER = timedelta(minutes=10)
"""A manifest that has been PUBLISHING for longer is not being worked on: the next claim, plan or sweep finishes it."""
PERMISSION = re.compile(r"\b(?:dynamodb|glue|kms|s3):[A-Z]\w+")
"""An IAM action, as the reason of a manifest names the one that is missing."""
MAX_NAMED_MANIFESTS = 100
"""Maximum number of manifests that are not DONE that a verdict document names; all of them are counted."""


@dataclass(slots=True, kw_only=True)
class Tally(ManifestCounts):
    """Its size depends on the number of datasets, and not on that of the rows."""

    now: datetime
    """Aware."""
    worked_on: int = 0
    """Open manifests that a process may be working on."""
    damaged_objects: int = 0
    damaged: list[DamagedObject] = field(default_factory=list)
    """The first ``MAX_NAMED_OBJECTS``."""
    not_done: list[ManifestRow] = field(default_factory=list)
    """The first ``MAX_NAMED_MANIFESTS``."""
    datasets: DatasetTallies = field(default_factory=DatasetTallies)
    unreadable: list[ManifestRow] = field(default_factory=list)
    """The first ``MAX_NAMED_FILES`` DONE manifests with files that could not be read."""
    first_failed: ManifestRow | None = None
    first_open: ManifestRow | None = None
    """A missing permission stops every manifest of a run, so a reason that names one comes before all others."""

    def add(self, row: ManifestRow) -> None:
        self.datasets.add(row)
        self.count_state(row)
        if row.state == State.DONE:
            return
        if len(self.not_done) < MAX_NAMED_MANIFESTS:
            self.not_done.append(row)
        if row.state == State.FAILED:
            self.first_failed = self.first_failed or row
        if row.open:
            self.worked_on += is_worked_on(row, self.now)
            if self.first_open is None or _order_of_reason(row) < _order_of_reason(self.first_open):
                self.first_open = row

    def add_totals(self, row: ManifestRow, totals: PublishedTotals) -> None:
        self.datasets.add_totals(row, totals)
        if totals.failed_files and len(self.unreadable) < MAX_NAMED_FILES:
            self.unreadable.append(row)
        self.count_totals(totals)

    def add_damage(self, damage: Damage) -> None:
        self.damaged_objects += damage.objects
        self.damaged += damage.named[: MAX_NAMED_OBJECTS - len(self.damaged)]


def is_worked_on(row: ManifestRow, now: datetime) -> bool:
    """Whether a process may be working on it: a live lease, or a publish that began recently."""
    if row.has_live_lease(now):
        return True
    return (
        row.state == State.PUBLISHING and now - datetime.fromisoformat(row.changed_at) < PUBLISHER_PRESUMED_DEAD_AFTER
    )


def _order_of_reason(row: ManifestRow) -> int:
    """0 if the reason names a permission, 1 for any other reason, 2 without a reason."""
    if row.reason is None:
        return 2
    return 0 if PERMISSION.search(row.reason) else 1
