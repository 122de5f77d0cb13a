"""Workers of the simulated streaming job: they come with the tasks and leave when they were idle, and are billed."""

from __future__ import annotations

from collections.abc import Sequence

from lake.settings import Settings
from router.estimate.night import DRIVERS, RAMP_SECONDS
from router.estimate.stream_cluster import stream_cluster
from sizing.assumptions import EXECUTOR_IDLE_SECONDS, FIRST_EXECUTOR_SECONDS, TASK_SECONDS
from sizing.speed import Work


class StreamWorkers:
    """Convert the tasks of manifests, the oldest first."""

    def __init__(self, settings: Settings) -> None:
        self._cluster = stream_cluster(settings)
        self.start_seconds = self._cluster.start_seconds
        """From the start of a run until it begins its first micro-batch."""
        self._min_executors = self._cluster.min_executors
        self._max_executors = settings.stream.max_workers - DRIVERS
        self._executors, self._busy_until = self._min_executors, 0.0
        self.dollars = 0.0

    @property
    def cores(self) -> int:
        """Those that convert now; while a driver is alone, those of the executor that is about to come."""
        return self._cores(max(1, self._executors))

    def convert(self, works: Sequence[Work], start: float, overhead: float) -> list[float]:
        """When each of these manifests, converted side by side, is published.

        Cores that become free take tasks of the oldest manifest first, so each is published when its own tasks and
        those of the ones before it have ended.

        Parameters
        ----------
        overhead
            Seconds besides the tasks.
        """
        self.release(start)
        before = self._executors
        tasks = sum(work.tasks for work in works)
        self._executors = max(before, min(-(-tasks // self._cluster.vcpus), self._max_executors))
        ramp = RAMP_SECONDS / 2 * (self._executors - before) / (self._executors + DRIVERS)
        wait = 0.0 if self._cores(before) else FIRST_EXECUTOR_SECONDS
        ends, seconds, tasks = [], 0.0, 0
        for work in works:
            seconds, tasks = seconds + self.core_seconds(work), tasks + work.tasks
            few, many = (min(tasks, self._cores(executors)) for executors in (before, self._executors))
            shared = min(seconds / few, seconds / many + ramp) if few else seconds / many + ramp
            ends.append(start + overhead + wait + max(self.longest_seconds(work), shared))
        self._bill(start, max(ends), self._executors - self._min_executors)
        self._busy_until = max(ends)
        return ends

    def core_seconds(self, work: Work) -> float:
        """Time of cores for it, that of the tasks besides their bytes included."""
        return work.core_seconds + work.tasks * TASK_SECONDS

    def longest_seconds(self, work: Work) -> float:
        """Its longest task."""
        return work.longest_seconds + TASK_SECONDS

    def release(self, now: float) -> None:
        """Give back what is idle for long enough."""
        idle_until = min(now, self._busy_until + EXECUTOR_IDLE_SECONDS)
        if self._executors > self._min_executors and idle_until > self._busy_until:
            self._bill(self._busy_until, idle_until, self._executors - self._min_executors)
        if now - self._busy_until > EXECUTOR_IDLE_SECONDS:
            self._executors = self._min_executors

    def lend(self, seconds: float) -> None:
        """Work longer by these seconds, for others."""
        self._bill(self._busy_until, self._busy_until + seconds, self._executors - self._min_executors)
        self._busy_until += seconds

    def bill_run(self, start: float, end: float) -> None:
        """Bill a run for the workers that it always has."""
        self._bill(start, end, self._min_executors, DRIVERS)

    def _cores(self, executors: int) -> int:
        return executors * self._cluster.vcpus

    def _bill(self, start: float, end: float, executors: int, drivers: int = 0) -> None:
        cluster = self._cluster
        hours = (end - start) / 3600
        self.dollars += hours * (drivers * cluster.driver_dollars + executors * cluster.executor_dollars)
