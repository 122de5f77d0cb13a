"""Arrivals to manifests, as ``route`` makes them: by the product's own decision on the lane and its own cut."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import count
from typing import TypeVar

from lake.compression import has_compressed_name
from lake.ledger import ManifestRow, State
from lake.manifest import Lane, ObjectVersion, Partition
from lake.settings import Settings
from lake.speed import Speeds
from lake.time import iso_utc
from router.ownership.owner import Draft, RoutedArrival, cut_drafts
from router.route.decide_lane import decide_lane, stream_file_limit
from sizing.arrivals import DAY_SECONDS, FileGroup
from sizing.assumptions import POLLERS, ROUTE_SECONDS, Speed, Work

Event = TypeVar("Event")
MAX_ARRIVALS = 1000
"""Events of one invocation of ``route`` (infra/arrivals.py)."""
_PHASE = (math.sqrt(5) - 1) / 2
"""Multiples of it spread most evenly: the windows of the pollers begin at any time, and never in step with triggers."""


@dataclass(frozen=True, slots=True)
class SimulatedManifest:
    """A manifest, with what the simulation follows."""

    row: ManifestRow
    arrived: float
    """Middle of the arrivals of its files, in seconds from the start of the day."""
    queued: float
    """When a lane can see it, in the same seconds."""
    work: Work
    datasets: int = 1
    """Number of datasets for which its one stands."""

    @property
    def manifests(self) -> int:
        """Number of manifests for which it stands."""
        return min(self.datasets, self.row.files)


@dataclass(frozen=True, slots=True)
class _Decision:
    """On files that are alike."""

    partition: Partition
    lane: Lane
    reason: str
    urgent: bool


class Router:
    """Routes window after window."""

    def __init__(self, settings: Settings, speed: Speed, night: datetime) -> None:
        self._settings, self._speed = settings, speed
        self._start = night - timedelta(seconds=DAY_SECONDS)
        self._numbers = count()
        self._decided: dict[tuple[object, ...], _Decision | None] = {}
        self._decided_at = ""
        self._assumed = Speeds({}, settings.price)
        self._compressed: dict[str, bool] = {}
        self._datasets: dict[str, int] = {}
        """By a dataset's name: the number of those for which it stands."""
        self._works: dict[tuple[str, tuple[int, int, int, int, int]], Work] = {}
        self.ignored_files = 0
        """Files that no rule of the settings takes."""
        self.spilled_files = 0
        """Files of peak hours that went to the batch lane because of the stream's backlog."""
        self.invocations = 0
        """Of ``route``."""
        self.admitted_seconds = 0.0
        """Time of a core for the peak files of the last window that have not spilled."""

    def route(self, window: int, groups: Sequence[FileGroup], room: float = math.inf) -> list[SimulatedManifest]:
        """The manifests of a window's files; peak files that take more than ``room`` seconds of a core spill."""
        self.admitted_seconds = 0.0
        if not groups:
            return []
        length = self._settings.input.event_window_seconds
        middle, end = (window + 0.5) * length, (window + 1.0) * length
        at, now = (self._start + timedelta(seconds=seconds) for seconds in (middle, end))
        arrived_at = iso_utc(at)
        urgent = [rule.urgent for rule in self._settings.datasets if rule.urgent.min_bytes or rule.urgent.max_bytes]
        # Nothing else that a decision depends on changes within a minute.
        if self._decided_at != f"{at:%dT%H:%M}{now:%H:%M}":
            self._decided, self._decided_at = {}, f"{at:%dT%H:%M}{now:%H:%M}"
        decided = self._decided
        routed: list[tuple[RoutedArrival, int]] = []
        for group in groups:
            file = ObjectVersion("input", group.key, "", group.bytes, arrived_at)
            # Of a size, the decision depends on these limits only: a listing has many sizes in a window.
            is_larger = group.bytes > stream_file_limit(group.key, self._settings)
            alike = (group.key, is_larger, *(rule.takes_size(group.bytes) for rule in urgent))
            if alike not in decided:
                decided[alike] = self._decide(file, at, now)
            decision = decided[alike]
            if decision is None:
                self.ignored_files += group.count
                continue
            self._datasets[decision.partition.dataset] = group.datasets
            fits = group.count
            if decision.lane == Lane.STREAM and not decision.urgent:
                seconds = self._assumed.file_seconds(file)
                fits = int(min(max(room - self.admitted_seconds, 0.0) / seconds, fits))
                self.admitted_seconds += fits * seconds
                self.spilled_files += group.count - fits
            arrival = RoutedArrival(file, decision.partition, decision.lane, decision.reason, urgent=decision.urgent)
            found_files = ((arrival, fits), (replace(arrival, lane=Lane.BATCH), group.count - fits))
            routed += [(routed_file, number) for routed_file, number in found_files if number]
        created_at, found = iso_utc(now), invocations(routed)
        self.invocations += len(found)
        # Each poller has windows of its own, which end one after the other.
        later = [length * (poller + window * _PHASE % 1) / len(found) for poller in range(len(found))]
        return [
            self._manifest(manifest, created_at, middle + seconds, end + seconds + ROUTE_SECONDS)
            for events, seconds in zip(found, later, strict=True)
            for draft in cut_drafts(events, self._settings, self._new_id)
            for manifest in self._by_partition(draft)
        ]

    def _by_partition(self, draft: Draft) -> list[Draft]:
        """A part has files of several datasets; a manifest is a draft of one."""
        if draft.lane == Lane.STREAM:
            return [draft]
        partitions: defaultdict[Partition, list[RoutedArrival]] = defaultdict(list)
        for arrival in draft.arrivals:
            partitions[arrival.partition].append(arrival)
        return [replace(draft, id=self._new_id(), arrivals=tuple(found)) for found in partitions.values()]

    def _decide(self, file: ObjectVersion, at: datetime, now: datetime) -> _Decision | None:
        found = decide_lane(file, self._settings, now)
        if found.lane is None or found.dataset is None:
            return None
        return _Decision(Partition.of(found.dataset, at), found.lane, found.reason, found.urgent)

    def _manifest(self, draft: Draft, created_at: str, arrived: float, queued: float) -> SimulatedManifest:
        total = compressed = longest = files = 0
        for arrival in draft.arrivals:
            size = arrival.file.size
            total += size
            if arrival.file.key not in self._compressed:
                self._compressed[arrival.file.key] = has_compressed_name(arrival.file.key)
            if self._compressed[arrival.file.key]:
                compressed += size
                files += 1
                longest = max(longest, size)
        row = ManifestRow(
            draft.id,
            State.QUEUED,
            draft.lane,
            draft.partition,
            created_at,
            total,
            len(draft.arrivals),
            compressed,
            draft.urgent,
        )
        dataset, sizes = draft.partition.dataset, (total - compressed, compressed, longest, files, len(draft.arrivals))
        datasets = self._datasets[dataset]
        if (dataset, sizes) not in self._works:
            self._works[dataset, sizes] = self._speed.of_dataset(dataset).work(*sizes, min(datasets, row.files))
        return SimulatedManifest(row, arrived, queued, self._works[dataset, sizes], datasets)

    def _new_id(self) -> str:
        return f"{next(self._numbers):08d}"


def invocations(routed: Iterable[tuple[Event, int]]) -> list[list[Event]]:
    """The events of a window, as several pollers divide them: each gets its share of every kind of files."""
    routed = list(routed)
    total = sum(number for _, number in routed)
    pollers = max(min(POLLERS, total), -(-total // MAX_ARRIVALS))
    events: defaultdict[int, list[Event]] = defaultdict(list)
    first = 0
    for event, number in routed:
        each, rest = divmod(number, pollers)
        for poller in range(pollers):
            extra = (poller - first) % pollers < rest
            events[poller].extend([event] * (each + extra))
        first = (first + rest) % pollers
    return [found for found in events.values() if found]
