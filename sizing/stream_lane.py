"""The stream lane in virtual time: triggers, portions, auto scaling, and runs that start and end."""

import heapq
from collections import deque
from collections.abc import Sequence
from itertools import count

from lake.cut import cut
from lake.engines import ENGINES
from lake.engines.description import WORKERS
from lake.settings import Settings
from lake.settings.lanes import BATCH_FILES, MAX_LOOK_SECONDS, MAX_POINTERS_PER_TRIGGER, SECONDS_PER_CORE
from lake.speed import InputSize, Speeds
from router.estimate.night import DRIVERS, RAMP_SECONDS
from router.stream.spill import TASK_SECONDS
from sizing.options import one_stream_job
from sizing.result import Latencies
from sizing.routing import SimulatedManifest

# Measured means: on the local cloud, 2 busy cores, with 25 ms more for each read and 40 ms more for each write
# (docs/sizing.md, "Compared with real runs").
PORTION_SECONDS = 4.0
"""Seconds from a trigger until a manifest is published, without its tasks: Spark lists and reads the pointers; claims,
plan, commit, publish. Measured: 4 to 8, and 2 to 3 without the added time."""
URGENT_PORTION_SECONDS = 1.5
"""The same time after a look for urgent pointers. Measured: up to 1.3."""
URGENT_CORE_SHARE = 0.5
"""Share of the cores for urgent manifests next to a micro-batch: Spark's pools share them (streaming_job/stream.py)."""
EXECUTOR_IDLE_SECONDS = 60.0
"""An executor without work is released after this time (Spark, ``spark.dynamicAllocation.executorIdleTimeout``)."""
FIRST_EXECUTOR_SECONDS = RAMP_SECONDS
"""Assumed time until a driver that was alone has an executor."""


class StreamWorkers:
    """Convert the tasks of manifests, the oldest first: the executors of all streaming jobs."""

    def __init__(self, settings: Settings) -> None:
        stream, engine, jobs = settings.stream, ENGINES[settings.stream.engine], settings.stream.jobs
        self.start_seconds = engine.start_seconds
        """Assumed seconds from the start of a run until it begins its first micro-batch."""
        worker, prices, self._vcpus = stream.worker_type, engine.prices(settings), WORKERS[stream.worker_type]
        # US dollars an hour.
        self._driver_dollars = engine.stream_driver(worker).at(prices)
        self._executor_dollars = engine.worker(worker).at(prices)
        self._drivers, self._min_executors = jobs * DRIVERS, jobs * stream.min_executors
        self._max_executors = jobs * (stream.max_workers - DRIVERS)
        self._executors, self._busy_until = self._min_executors, 0.0
        self.dollars = 0.0

    @property
    def cores(self) -> int:
        """Cores that convert now; while a driver is alone, the cores of the executor that is about to start."""
        return self._vcpus * max(1, self._executors)

    def convert(self, manifests: Sequence[SimulatedManifest], start: float, overhead: float) -> list[float]:
        """Return when each of these manifests, converted concurrently, is published.

        Free cores take tasks of the oldest manifest first, so a manifest is published when its tasks and the tasks of
        older manifests have ended. ``overhead``: seconds in addition to the tasks.
        """
        self.release(start)
        before, works = self._executors, [manifest.work for manifest in manifests]
        tasks = sum(work.tasks for work in works)
        self._executors = max(before, min(-(-tasks // self._vcpus), self._max_executors))
        ramp = RAMP_SECONDS / 2 * (self._executors - before) / (self._executors + DRIVERS)
        wait = 0.0 if before else FIRST_EXECUTOR_SECONDS
        ends, seconds, tasks = [], 0.0, 0
        for work in works:
            seconds, tasks = seconds + work.busy_seconds, tasks + work.tasks
            few, many = (min(tasks, self._vcpus * executors) for executors in (before, self._executors))
            shared = min(seconds / few, seconds / many + ramp) if few else seconds / many + ramp
            ends.append(start + overhead + wait + max(work.longest_seconds + TASK_SECONDS, shared))
        self._bill(start, max(ends), self._executors - self._min_executors)
        self._busy_until = max(ends)
        return ends

    def release(self, now: float) -> None:
        """Release executors that were idle for long enough."""
        idle_until = min(now, self._busy_until + EXECUTOR_IDLE_SECONDS)
        if self._executors > self._min_executors and idle_until > self._busy_until:
            self._bill(self._busy_until, idle_until, self._executors - self._min_executors)
        if now - self._busy_until > EXECUTOR_IDLE_SECONDS:
            self._executors = self._min_executors

    def extend(self, seconds: float) -> None:
        """Work longer by these seconds, for other tasks."""
        self._bill(self._busy_until, self._busy_until + seconds, self._executors - self._min_executors)
        self._busy_until += seconds

    def bill_run(self, start: float, end: float) -> None:
        """Bill a run for the workers that it always has."""
        self._bill(start, end, self._min_executors, self._drivers)

    def _bill(self, start: float, end: float, executors: int, drivers: int = 0) -> None:
        hours = (end - start) / 3600
        self.dollars += hours * (drivers * self._driver_dollars + executors * self._executor_dollars)


class StreamLane:
    """Converts manifests in the order of their pointers, and urgent ones concurrently.

    ``window`` is the stream window, in seconds from the start of the day; None if there is none. Several streaming jobs
    are one with all their executors.
    """

    def __init__(self, settings: Settings, window: tuple[float, float] | None) -> None:
        self._stream, self._speeds = one_stream_job(settings.stream), Speeds({}, settings)
        self._spread = settings.input.event_window_seconds
        self._window = window
        self._queue: deque[SimulatedManifest] = deque()
        self._urgent: deque[SimulatedManifest] = deque()
        self._looked = 0.0
        self._urgent_ends: list[float] = []
        self._published: list[tuple[float, int, SimulatedManifest]] = []
        self._numbers = count()
        self._run: float | None = None
        """Start of the last run, which is not billed yet."""
        self._billed_until = 0.0
        self._free_at = self._run_started = self._urgent_until = self._begun = self._ended = 0.0
        self._overran = False
        self._jobs, self._workers = settings.stream.jobs, StreamWorkers(settings)
        self.run_seconds = 0.0
        """Time of all runs; complete after ``finish``."""
        self.backlog_bytes, self.backlog_core_seconds = 0, 0.0
        self.latencies, self.urgent_latencies = Latencies(), Latencies()
        self.bytes = self.compressed_bytes = self.manifests = self.objects = 0

    @property
    def dollars(self) -> float:
        """Billed cost of the job; complete after ``finish``."""
        return self._workers.dollars

    def add(self, manifest: SimulatedManifest) -> None:
        """Add a pointer to the inbox; call it in the order of time."""
        (self._urgent if manifest.row.urgent else self._queue).append(manifest)
        self.backlog_bytes += manifest.row.bytes
        self.backlog_core_seconds += _watched_seconds(manifest)
        self.bytes += manifest.row.bytes
        self.compressed_bytes += manifest.row.compressed_bytes
        self.manifests += manifest.manifests
        self.objects += manifest.work.tasks

    def advance(self, until: float) -> None:
        """Begin every micro-batch and every urgent portion up to this time.

        Afterwards the backlog is valid for it.
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
            self.backlog_core_seconds -= _watched_seconds(manifest)

    def finish(self) -> None:
        """Convert the remaining manifests, and bill all runs."""
        self.advance(float("inf"))
        self._workers.release(float("inf"))
        self._bill_runs(float("inf"))

    def _next_start(self) -> float:
        """The next trigger with a pointer in the inbox; at once if the last micro-batch took longer than that."""
        if not self._queue:
            return float("inf")
        seen = self._queue[0].queued
        if self._overran and seen <= self._free_at:
            return self._free_at
        trigger = self._stream.trigger_seconds
        return -(-max(seen, self._free_at) // trigger) * trigger

    def _next_look(self) -> float:
        """The next look that finds an urgent pointer: an interval after the last look, or when a portion ends."""
        if not self._urgent:
            return float("inf")
        interval, queued = min(MAX_LOOK_SECONDS, self._stream.trigger_seconds), self._urgent[0].queued
        while True:
            look, ends = self._looked + interval, self._urgent_ends
            if not ends:
                return look + max(0.0, -(-(queued - look) // interval) * interval)
            look = min(look, ends[0])
            if look >= queued:
                return look
            if look == ends[0]:
                heapq.heappop(ends)
            self._looked = look

    def _convert_urgent(self, look: float) -> None:
        """Convert the urgent manifests of a look at once, with a share of the cores during a micro-batch."""
        self._looked = look
        while self._urgent_ends and self._urgent_ends[0] <= look:
            heapq.heappop(self._urgent_ends)
        self._begin_run(look)
        taken: list[SimulatedManifest] = []
        while self._urgent and self._urgent[0].queued <= look:
            taken.append(self._urgent.popleft())
        self._begun = start = max(look, self._run_started, self._urgent_until)
        seconds = sum(manifest.work.busy_seconds for manifest in taken)
        if start >= self._free_at:
            ends, cores = self._workers.convert(taken, start, URGENT_PORTION_SECONDS), float(self._workers.cores)
            # A micro-batch may begin meanwhile.
            self._free_at = start
        else:
            cores = URGENT_CORE_SHARE * self._workers.cores
            longest = max(manifest.work.longest_seconds for manifest in taken) + TASK_SECONDS
            ends = [start + URGENT_PORTION_SECONDS + max(longest, seconds / cores)] * len(taken)
            # The micro-batch takes longer by this time.
            extra = seconds / self._workers.cores
            self._workers.extend(extra)
            self._free_at += extra
        self._urgent_until = start + seconds / cores
        heapq.heappush(self._urgent_ends, max(ends))
        self._publish(taken, ends)

    def _publish(self, manifests: Sequence[SimulatedManifest], ends: list[float]) -> None:
        self._ended = max(self._ended, *ends)
        for manifest, end in zip(manifests, ends, strict=True):
            heapq.heappush(self._published, (end, next(self._numbers), manifest))
            self.latencies.add(end - manifest.arrived, manifest.row.files, self._spread)
            if manifest.row.urgent:
                self.urgent_latencies.add(end - manifest.arrived, manifest.row.files, self._spread)

    def _begin_run(self, start: float) -> None:
        """Start a run for the pointers if none exists any more or yet."""
        if self._run is not None and start <= self._end_of_run():
            return
        self._bill_runs(start)
        if self._window and self._window[0] + self._workers.start_seconds <= start <= self._window[1]:
            self._run = self._window[0]
        else:
            self._run = start
            self._free_at = self._run_started = start + self._workers.start_seconds

    def _bill_runs(self, before: float) -> None:
        """Bill the last run, and the run of a window that begins before this time; bill their overlap once."""
        spans = [] if self._run is None else [(self._run, self._end_of_run())]
        if self._window and self._window[0] < before:
            spans.append(self._window)
        for first, end in sorted(spans):
            if end > (start := max(first, self._billed_until)):
                self._workers.bill_run(start, end)
                self.run_seconds += self._jobs * (end - start)
                self._billed_until = end

    def _end_of_run(self) -> float:
        """The end of the run: after a window, current work ends; without a window the run is idle for a while."""
        last = max(self._free_at, self._ended)
        inside = self._window and self._window[0] <= self._begun <= self._window[1]
        return max(self._window[1], last) if inside and self._window else last + 60 * self._stream.idle_minutes

    def _micro_batch(self, start: float) -> None:
        taken: list[SimulatedManifest] = []
        pointers = 0
        while self._queue and pointers < MAX_POINTERS_PER_TRIGGER and self._queue[0].queued <= start:
            taken.append(self._queue.popleft())
            pointers += taken[-1].manifests
        self._begun = now = start
        for portion in cut(taken, self._size, (self._stream.parallel_seconds, BATCH_FILES)):
            ends = self._workers.convert(portion, now, PORTION_SECONDS)
            self._publish(portion, ends)
            now = max(ends)
        self._overran = now - start > self._stream.trigger_seconds
        self._free_at = now

    def _size(self, manifest: SimulatedManifest) -> InputSize:
        return InputSize(self._speeds.busy_seconds(manifest.row, SECONDS_PER_CORE), manifest.row.files)


def _watched_seconds(manifest: SimulatedManifest) -> float:
    """Return the backlog as a watch counts it (``read_core_seconds``)."""
    return max(manifest.work.core_seconds, TASK_SECONDS * manifest.manifests)
