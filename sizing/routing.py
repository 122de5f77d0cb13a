"""Arrivals as ``route`` handles them: the product's own decision on the lane, and own division in the stream lane."""

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import count
from typing import NamedTuple, TypeVar

from lake.ledger import ManifestRow, State
from lake.manifest import INFLATED_RATIO, Lane, ObjectVersion, Partition, has_compressed_name
from lake.settings import Settings
from lake.settings.routing import MAX_ARRIVALS_PER_INVOCATION
from lake.speed import Speeds
from lake.time import iso_utc
from router.estimate.other_costs import OUTPUT_RATIO
from router.ownership.owner import RoutedArrival, cut_drafts
from router.route.decide_lane import LaneDecision, decide_lane, stream_file_limit
from router.stream.spill import TASK_SECONDS
from sizing.arrivals import DAY_SECONDS, SPREAD, FileGroup

Event = TypeVar("Event")
POLLERS = 5
"""Batches of a queue that Lambda collects at the same time (AWS Lambda Developer Guide, "Using Lambda with Amazon
SQS"); it adds pollers under load, which is not simulated. Each has its own windows, never in step with triggers."""
ROUTE_SECONDS = 2.0
"""Seconds from the end of a window until its manifests are QUEUED and their pointers are in the inbox. Measured: 0.9;
the rest, until S3 has delivered the last event and the function is invoked, is assumed."""


class Work(NamedTuple):
    core_seconds: float
    """Time on one core, without the fixed time of tasks."""
    tasks: int
    """Number of cores that can work on it at the same time."""
    longest_seconds: float
    """Duration of the longest task; a compressed file is one task, however large."""

    @property
    def busy_seconds(self) -> float:
        return self.core_seconds + self.tasks * TASK_SECONDS


@dataclass(frozen=True, slots=True)
class SimulatedManifest:
    """A manifest of the stream lane, with the values that the simulation follows."""

    row: ManifestRow
    arrived: float
    """Middle of the arrivals of its files, in seconds from the start of the day."""
    queued: float
    """Time when the lane can see it, in the same seconds."""
    work: Work
    datasets: int = 1
    """Number of datasets that its dataset represents."""

    @property
    def manifests(self) -> int:
        return min(self.datasets, self.row.files)


class Collected(NamedTuple):
    group: FileGroup
    arrived: float
    """Middle of the arrivals of these files, in seconds from the start of the day."""


class Router:
    def __init__(self, settings: Settings, speeds: Speeds, night: datetime, gzip_ratio: float = INFLATED_RATIO) -> None:
        self._settings, self._speeds, self._gzip_ratio = settings, speeds, gzip_ratio
        self._start = night - timedelta(seconds=DAY_SECONDS)
        self._numbers = count()
        self._decided: dict[tuple[object, ...], LaneDecision] = {}
        self._decided_at = ""
        self._assumed = Speeds({}, settings)
        self.collected: defaultdict[Partition, list[Collected]] = defaultdict(list)
        """Files that wait for the night, in the order of time."""
        self.ignored_files = 0
        self.spilled_files = 0
        """Files of peak hours that went to the batch lane because of the stream's backlog."""
        self.invocations = 0
        self.admitted_seconds = 0.0
        """Core seconds for the peak files of the last window that have not spilled."""

    def route(self, window: int, groups: Sequence[FileGroup], room: float = math.inf) -> list[SimulatedManifest]:
        """Return the stream lane's manifests of a window; peak files beyond ``room`` core seconds spill."""
        self.admitted_seconds = 0.0
        length = self._settings.input.event_window_seconds
        middle, end = (window + 0.5) * length, (window + 1.0) * length
        at, now = (self._start + timedelta(seconds=seconds) for seconds in (middle, end))
        # Within a minute, a decision depends only on the file.
        if self._decided_at != f"{at:%dT%H:%M}{now:%H:%M}":
            self._decided, self._decided_at = {}, f"{at:%dT%H:%M}{now:%H:%M}"
        routed: list[tuple[RoutedArrival, int]] = []
        datasets: dict[Partition, int] = {}
        files = 0
        for group in groups:
            decision = self._decide(group, at, now)
            if decision.lane is None or decision.dataset is None:
                self.ignored_files += group.count
                continue
            files += group.count
            partition = Partition.of(decision.dataset, at)
            fits = group.count if decision.lane == Lane.STREAM else 0
            file = ObjectVersion("input", group.key, "", group.bytes, iso_utc(at))
            if fits and not decision.urgent:
                seconds = self._assumed.file_seconds(file)
                fits = int(min(max(room - self.admitted_seconds, 0.0) / seconds, fits))
                self.admitted_seconds += fits * seconds
                self.spilled_files += group.count - fits
            if fits:
                arrival = RoutedArrival(file, partition, Lane.STREAM, decision.reason, urgent=decision.urgent)
                routed.append((arrival, fits))
                datasets[partition] = group.datasets
            if fits < group.count:
                rest = replace(group, count=group.count - fits)
                self.collected[partition].append(Collected(rest, middle))
        pollers = max(min(POLLERS, files), -(-files // MAX_ARRIVALS_PER_INVOCATION))
        self.invocations += pollers
        return [
            self._manifest(draft.arrivals, draft.id, datasets[draft.partition], middle + later, end + later)
            for number, events in enumerate(divide_events(routed, pollers))
            # Each poller has its own windows, which end one after the other.
            for later in [length * (number + window * SPREAD % 1) / pollers]
            for draft in cut_drafts(events, self._settings, lambda: f"{next(self._numbers):08d}")
        ]

    def _decide(self, group: FileGroup, at: datetime, now: datetime) -> LaneDecision:
        """Decide about a file, once for all similar files: the size matters only by some limits."""
        settings = self._settings
        is_larger = group.bytes > stream_file_limit(group.key, settings)
        alike = (group.key, is_larger, *(rule.urgent.takes_size(group.bytes) for rule in settings.datasets))
        if alike not in self._decided:
            file = ObjectVersion("input", group.key, "", group.bytes, iso_utc(at))
            self._decided[alike] = decide_lane(file, settings, now)
        return self._decided[alike]

    def _manifest(
        self, arrivals: Sequence[RoutedArrival], name: str, datasets: int, arrived: float, end: float
    ) -> SimulatedManifest:
        total = compressed = compressed_files = 0
        for arrival in arrivals:
            total += arrival.file.size
            if has_compressed_name(arrival.file.key):
                compressed += arrival.file.size
                compressed_files += 1
        first, files = arrivals[0], len(arrivals)
        row = ManifestRow(
            name, State.QUEUED, Lane.STREAM, first.partition, "", total, files, compressed, urgent=first.urgent
        )
        convert, core_seconds = self._settings.convert, self._speeds.core_seconds(row)
        splits = -(-(total - compressed) // convert.split_bytes) + compressed_files
        written = (total + (self._gzip_ratio - 1) * compressed) * OUTPUT_RATIO
        tasks = max(min(datasets, files), min(round(written / convert.target_file_bytes), splits))
        longest = max(core_seconds / tasks, self._speeds.longest_seconds(row))
        return SimulatedManifest(row, arrived, end + ROUTE_SECONDS, Work(core_seconds, tasks, longest), datasets)


def divide_events(routed: Iterable[tuple[Event, int]], pollers: int) -> list[list[Event]]:
    """Divide the events of a window among pollers: each gets its share of every kind of files."""
    events: list[list[Event]] = [[] for _ in range(pollers)]
    first = 0
    for event, number in routed:
        each, rest = divmod(number, pollers)
        for poller in range(pollers):
            extra = (poller - first) % pollers < rest
            events[poller].extend([event] * (each + extra))
        first = (first + rest) % pollers
    return events
