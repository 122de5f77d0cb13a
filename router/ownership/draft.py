"""Arrivals to drafts: manifests of the stream lane, and parts of the hours of the batch lane. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lake.ledger import ArrivalRow
from lake.manifest import Lane, Manifest, ObjectVersion
from lake.partition import Partition
from router.collect.cut import cut

if TYPE_CHECKING:
    from lake.settings import Settings


@dataclass(frozen=True, slots=True)
class RoutedArrival:
    """An arrival with its partition and lane."""

    file: ObjectVersion
    partition: Partition
    lane: Lane
    reason: str
    """Why this lane; a sentence for people."""
    adopted_row: ArrivalRow | None = None
    """The current arrival row, which has no owner that will convert the file; None: a new arrival, without a row."""
    urgent: bool = False
    """Whether it goes before the other files of the stream lane."""


@dataclass(frozen=True, slots=True)
class Draft:
    """A manifest or a part to be: it exists once the ledger has its row."""

    id: str
    lane: Lane
    arrivals: tuple[RoutedArrival, ...]
    """Of one hour; in the stream lane of one dataset as well."""
    urgent: bool

    @property
    def partition(self) -> Partition:
        """The partition of its first arrival."""
        return self.arrivals[0].partition

    def manifest(self, created_at: str, files: Collection[ObjectVersion]) -> Manifest:
        """The manifest of ``files``, those of the draft whose arrival rows name it; ``created_at`` is ISO 8601, UTC."""
        return Manifest(self.id, self.lane, self.partition, created_at, tuple(sorted(files)), self.urgent)


def cut_drafts(routed: Iterable[RoutedArrival], settings: Settings, new_id: Callable[[], str]) -> list[Draft]:
    """Drafts that hold every arrival exactly once.

    Those of the stream lane are manifests, cut by ``stream.manifest_bytes`` and ``stream.manifest_files``; a larger
    file gets one of its own. Of the batch lane there is one for each hour, of all its datasets.
    """
    manifests: defaultdict[tuple[Partition, bool], list[RoutedArrival]] = defaultdict(list)
    parts: defaultdict[str, list[RoutedArrival]] = defaultdict(list)
    for arrival in routed:
        if arrival.lane == Lane.STREAM:
            manifests[arrival.partition, arrival.urgent].append(arrival)
        else:
            parts[arrival.partition.stamp].append(arrival)
    limits = settings.stream
    drafts = [
        Draft(new_id(), Lane.STREAM, piece, urgent)
        for (_, urgent), arrivals in manifests.items()
        for piece in cut(arrivals, lambda arrival: arrival.file.size, limits.manifest_bytes, limits.manifest_files)
    ]
    return drafts + [Draft(new_id(), Lane.BATCH, tuple(arrivals), urgent=False) for arrivals in parts.values()]
