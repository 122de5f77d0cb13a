"""The stream lane in virtual time: triggers, portions, auto scaling, and runs that start and end."""

from __future__ import annotations

import heapq
from collections import deque
from itertools import count
from typing import TYPE_CHECKING

from router.estimate.night import DRIVERS
from router.estimate.offer import RAMP_SECONDS
from router.estimate.stream_workers import stream_workers
from simulate.histogram import Latencies, Timeline

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lake.settings import Settings
    from simulate.routing import SimulatedManifest

MAX_POINTERS = 500
"""Pointers of a micro-batch (streaming_job/stream.py)."""
LOOK_SECONDS = 5.0
"""Interval between two looks for urgent pointers (streaming_job/urgent.py)."""
URGENT_CORE_SHARE = 0.5
"""Of the cores, for urgent manifests beside a micro-batch: Spark's pools share them (the same module)."""
PORTION_SECONDS = 4.0
"""Assumed: claims, plan, commit and publish around the tasks of the manifests that are converted side by side."""
EXECUTOR_IDLE_SECONDS = 60.0
"""An executor without work is given back after it (Spark, ``spark.dynamicAllocation.executorIdleTimeout``)."""
FIRST_EXECUTOR_SECONDS = RAMP_SECONDS
"""Assumed: until a driver that was alone has an executor."""


class StreamLane:
    """Converts manifests in the order in which their pointers came, and urgent ones beside the others.

    Parameters
    ----------
    window
        Start and end of the stream window, in seconds from the start of the day; None: there is none.
    failing_share
        Share of the manifests that are converted twice.
    """

    def __init__(self, settings: Settings, window: tuple[float, float] | None, failing_share: float) -> None:
        self._stream = settings.stream
        self._cluster = stream_workers(settings)
        self._window, self._failing_share = window, failing_share
        self._queue: deque[SimulatedManifest] = deque()
        self._urgent: deque[SimulatedManifest] = deque()
        self._published: list[tuple[float, int, SimulatedManifest]] = []
        self._numbers = count()
        self._live: list[tuple[float, float]] = []
        self._free_at = self._run_started = self._urgent_until = self._ended = 0.0
        self._overran = False
        self._executors, self._failing = self._cluster.min_executors, 0.0
        self.backlog_bytes, self.backlog_core_seconds = 0, 0.0
        self.latencies, self.urgent_latencies = Latencies(), Latencies()
        self.dpus = Timeline()
        self.dollars = 0.0
        self.bytes = 0

    def add(self, manifest: SimulatedManifest) -> None:
        """A pointer is in the inbox; call it in the order of time."""
        (self._urgent if manifest.row.urgent else self._queue).append(manifest)
        self.backlog_bytes += manifest.row.bytes
        self.backlog_core_seconds += manifest.work.core_seconds / self._cluster.speed_factor
        self.bytes += manifest.row.bytes

    def advance(self, until: float) -> None:
        """Begin every micro-batch and every urgent portion that begins up to then.

        Afterwards the backlog is that of this time.
        """
        while self._queue or self._urgent:
            start, look = self._next_start(), self._next_look()
            if min(start, look) > until:
                break
            if look < start:
                self._convert_urgent(look)
                continue
            self._begin_run(start)
            self._micro_batch(max(start, self._free_at))
        while self._published and self._published[0][0] <= until:
            _, _, manifest = heapq.heappop(self._published)
            self.backlog_bytes -= manifest.row.bytes
            self.backlog_core_seconds -= manifest.work.core_seconds / self._cluster.speed_factor

    def finish(self) -> float:
        """Convert what is left; returns the time at which the last manifest is published."""
        self.advance(float("inf"))
        self._release_executors(float("inf"))
        if self._live:
            start, _ = self._live[-1]
            self._live[-1] = (start, self._end_of_run())
        spans = merged([*self._live, *([self._window] if self._window else [])])
        for start, end in spans:
            self._bill(start, end, self._cluster.min_executors, drivers=DRIVERS)
        return self._ended

    def _next_start(self) -> float:
        """The next trigger at which a pointer is there; at once where the last micro-batch took longer than that."""
        if not self._queue:
            return float("inf")
        seen = self._queue[0].queued
        if self._overran and seen <= self._free_at:
            return self._free_at
        trigger = self._stream.trigger_seconds
        return -(-max(seen, self._free_at) // trigger) * trigger

    def _next_look(self) -> float:
        """The next look at which an urgent pointer is there."""
        if not self._urgent:
            return float("inf")
        interval = min(LOOK_SECONDS, self._stream.trigger_seconds)
        return -(-self._urgent[0].queued // interval) * interval

    def _convert_urgent(self, look: float) -> None:
        """The urgent manifests of a look: at once, by a share of the cores while a micro-batch is under way."""
        self._begin_run(look)
        taken: list[SimulatedManifest] = []
        while self._urgent and self._urgent[0].queued <= look:
            taken.append(self._urgent.popleft())
        start = max(look, self._run_started, self._urgent_until)
        work = sum(manifest.work.core_seconds for manifest in taken) / self._cluster.speed_factor
        if start >= self._free_at:
            end = self._convert(taken, start)
            cores = float(self._cores)
            # A micro-batch may begin meanwhile.
            self._free_at = start
        else:
            cores = URGENT_CORE_SHARE * self._cores
            longest = max(manifest.work.longest_seconds for manifest in taken)
            end = start + PORTION_SECONDS + max(longest, work / cores)
            # The micro-batch takes longer by what it has lent.
            self._free_at += work / self._cores
        self._urgent_until = start + work / cores
        self._publish(taken, end)

    @property
    def _cores(self) -> int:
        """Those that convert now; while a driver is alone, those of the executor that is about to come."""
        return max(1, self._executors) * self._cluster.vcpus

    def _publish(self, manifests: list[SimulatedManifest], end: float) -> None:
        for manifest in manifests:
            self._ended = max(self._ended, end)
            heapq.heappush(self._published, (end, next(self._numbers), manifest))
            self.latencies.add(end - manifest.arrived, manifest.row.files)
            if manifest.row.urgent:
                self.urgent_latencies.add(end - manifest.arrived, manifest.row.files)

    def _begin_run(self, start: float) -> None:
        """A run that has ended, or was never there, is started for the pointers."""
        if self._live and start <= self._end_of_run():
            return
        if self._live:
            first, _ = self._live[-1]
            self._live[-1] = (first, self._end_of_run())
        if self._window and self._window[0] + self._cluster.start_seconds <= start <= self._window[1]:
            self._live.append((self._window[0], start))
        else:
            self._live.append((start, start))
            self._free_at = self._run_started = start + self._cluster.start_seconds

    def _end_of_run(self) -> float:
        idle = self._free_at + 60 * self._stream.idle_minutes
        inside = self._window and self._window[0] <= self._free_at <= self._window[1]
        return max(self._window[1], self._free_at) if inside and self._window else idle

    def _micro_batch(self, start: float) -> None:
        taken: list[SimulatedManifest] = []
        while self._queue and len(taken) < MAX_POINTERS and self._queue[0].queued <= start:
            taken.append(self._queue.popleft())
        now = start
        for portion in self._portions(taken):
            end = self._convert(portion, now)
            self._publish(portion, end)
            now = end
        self._overran = now - start > self._stream.trigger_seconds
        self._free_at = now

    def _portions(self, manifests: list[SimulatedManifest]) -> Iterator[list[SimulatedManifest]]:
        portion: list[SimulatedManifest] = []
        size = files = 0
        for manifest in manifests:
            row = manifest.row
            fits = size + row.bytes <= self._stream.side_by_side_bytes and files + row.files <= self._stream.batch_files
            if portion and not fits:
                yield portion
                portion, size, files = [], 0, 0
            portion.append(manifest)
            size, files = size + row.bytes, files + row.files
        if portion:
            yield portion

    def _convert(self, portion: list[SimulatedManifest], start: float) -> float:
        """The end of a portion; workers come with the tasks and leave when they were idle."""
        work = sum(manifest.work.core_seconds * (2 if self._fails() else 1) for manifest in portion)
        work /= self._cluster.speed_factor
        tasks = sum(manifest.work.tasks for manifest in portion)
        longest = max(manifest.work.longest_seconds for manifest in portion) / self._cluster.speed_factor
        self._release_executors(start)
        before, vcpus = self._executors, self._cluster.vcpus
        self._executors = max(before, min(-(-tasks // vcpus), self._stream.max_workers - DRIVERS))
        few, many = (min(tasks, executors * vcpus) for executors in (before, self._executors))
        ramp = RAMP_SECONDS / 2 * (self._executors - before) / (self._executors + DRIVERS)
        if few:
            end = start + PORTION_SECONDS + max(longest, min(work / few, work / many + ramp))
        else:
            end = start + PORTION_SECONDS + FIRST_EXECUTOR_SECONDS + max(longest, work / many + ramp)
        self._bill(start, end, self._executors - self._cluster.min_executors)
        self._free_at = end
        return end

    def _release_executors(self, now: float) -> None:
        idle_until = min(now, self._free_at + EXECUTOR_IDLE_SECONDS)
        further = self._executors - self._cluster.min_executors
        if further and idle_until > self._free_at:
            self._bill(self._free_at, idle_until, further)
        if now - self._free_at > EXECUTOR_IDLE_SECONDS:
            self._executors = self._cluster.min_executors

    def _fails(self) -> bool:
        """Every so many manifests, evenly."""
        self._failing += self._failing_share
        if self._failing < 1:
            return False
        self._failing -= 1
        return True

    def _bill(self, start: float, end: float, executors: int, drivers: int = 0) -> None:
        cluster = self._cluster
        self.dpus.add(start, end, drivers * cluster.driver_dpus + executors * cluster.executor_dpus)
        hours = (end - start) / 3600
        self.dollars += hours * (drivers * cluster.driver_dollars + executors * cluster.executor_dollars)


def merged(spans: list[tuple[float, float]]) -> list[tuple[float, float]]:
    """The same times without overlaps, in order."""
    found: list[tuple[float, float]] = []
    for start, end in sorted(spans):
        if found and start <= found[-1][1]:
            found[-1] = (found[-1][0], max(end, found[-1][1]))
        else:
            found.append((start, end))
    return found
