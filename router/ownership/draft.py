"""Arrivals to drafts of manifests: each of one dataset, hour, lane and urgency, with bounded bytes and files. Pure."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lake.manifest import Lane, Manifest

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable

    from lake.ledger import ArrivalRow
    from lake.manifest import ObjectVersion
    from lake.partition import Partition
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
    """A manifest to be: it exists once the ledger has its row."""

    id: str
    partition: Partition
    lane: Lane
    arrivals: tuple[RoutedArrival, ...]
    urgent: bool

    def manifest(self, created_at: str, files: Collection[ObjectVersion]) -> Manifest:
        """The manifest of ``files``, those of the draft whose arrival rows name it; ``created_at`` is ISO 8601, UTC."""
        return Manifest(self.id, self.lane, self.partition, created_at, tuple(sorted(files)), self.urgent)


def cut_drafts(routed: Iterable[RoutedArrival], settings: Settings, new_id: Callable[[], str]) -> list[Draft]:
    """Drafts that hold every arrival exactly once.

    Limits are ``manifest_bytes`` and ``manifest_files`` of the arrival's lane; a larger file gets a draft of its own.
    """
    groups: defaultdict[tuple[Partition, Lane, bool], list[RoutedArrival]] = defaultdict(list)
    for arrival in routed:
        groups[arrival.partition, arrival.lane, arrival.urgent].append(arrival)
    drafts: list[Draft] = []
    for (partition, lane, urgent), arrivals in groups.items():
        limits = settings.stream if lane == Lane.STREAM else settings.batch
        pieces = _pieces(arrivals, limits.manifest_bytes, limits.manifest_files)
        drafts += [Draft(new_id(), partition, lane, piece, urgent) for piece in pieces]
    return drafts


def _pieces(arrivals: list[RoutedArrival], max_bytes: int, max_files: int) -> list[tuple[RoutedArrival, ...]]:
    pieces: list[tuple[RoutedArrival, ...]] = []
    piece: list[RoutedArrival] = []
    size = 0
    for arrival in arrivals:
        if piece and (size + arrival.file.size > max_bytes or len(piece) == max_files):
            pieces.append(tuple(piece))
            piece, size = [], 0
        piece.append(arrival)
        size += arrival.file.size
    if piece:
        pieces.append(tuple(piece))
    return pieces
