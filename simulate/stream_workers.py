"""Workers of the simulated streaming job: they come with the tasks and leave when they were idle, and are billed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lake.settings.workers import DPUS, WORKERS
from router.estimate.night import DRIVERS
from router.estimate.offer import RAMP_SECONDS
from simulate.histogram import Timeline

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lake.settings import StreamSettings
    from simulate.speed import Work
    from simulate.stream_times import StreamTimes

EXECUTOR_IDLE_SECONDS = 60.0
"""An executor without work is given back after it (Spark, ``spark.dynamicAllocation.executorIdleTimeout``)."""
MIN_WORKERS = DRIVERS + 1
"""Workers of a run that has nothing to do."""


class StreamWorkers:
    """Convert the tasks of manifests, the oldest first.

    Parameters
    ----------
    times
        Those of a task, and of the machine where it is not Glue.
    """

    def __init__(self, stream: StreamSettings, times: StreamTimes) -> None:
        self._vcpus, self._max_workers = WORKERS[stream.worker_type], stream.max_workers
        self._worker_dpus, self._machine, self._task_seconds = DPUS[stream.worker_type], times.machine, times.task
        self._min_workers = times.machine.workers if times.machine else MIN_WORKERS
        self._workers, self._busy_until = self._min_workers, 0.0
        self.dpus = Timeline()
        self.dpu_seconds = 0.0

    @property
    def cores(self) -> int:
        """Those that convert now."""
        return self._cores(self._workers)

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
        before = self._workers
        if self._machine is None:
            tasks = sum(work.tasks for work in works)
            self._workers = max(before, min(DRIVERS + -(-tasks // self._vcpus), self._max_workers))
        ramp = RAMP_SECONDS / 2 * (self._workers - before) / self._workers
        ends, seconds, tasks = [], 0.0, 0
        for work in works:
            seconds, tasks = seconds + self.core_seconds(work), tasks + work.tasks
            few, many = (min(tasks, self._cores(workers)) for workers in (before, self._workers))
            shared = min(seconds / few, seconds / many + ramp)
            ends.append(start + overhead + max(self.longest_seconds(work), shared))
        self._bill(start, max(ends), self._workers - self._min_workers)
        self._busy_until = max(ends)
        return ends

    def core_seconds(self, work: Work) -> float:
        """Time of cores for it, that of the tasks besides their bytes included."""
        return work.core_seconds + work.tasks * self._task_seconds

    def longest_seconds(self, work: Work) -> float:
        """Its longest task."""
        return work.longest_seconds + self._task_seconds

    def release(self, now: float) -> None:
        """Give back what is idle for long enough."""
        idle_until = min(now, self._busy_until + EXECUTOR_IDLE_SECONDS)
        if self._workers > self._min_workers and idle_until > self._busy_until:
            self._bill(self._busy_until, idle_until, self._workers - self._min_workers)
        if now - self._busy_until > EXECUTOR_IDLE_SECONDS:
            self._workers = self._min_workers

    def lend(self, seconds: float) -> None:
        """Work longer by these seconds, for others."""
        self._bill(self._busy_until, self._busy_until + seconds, self._workers - self._min_workers)
        self._busy_until += seconds

    def bill_run(self, start: float, end: float) -> None:
        """Bill a run for the workers that it always has."""
        self._bill(start, end, self._min_workers)

    def _cores(self, workers: int) -> int:
        return self._machine.cores if self._machine else (workers - DRIVERS) * self._vcpus

    def _bill(self, start: float, end: float, workers: int) -> None:
        self.dpus.add(start, end, workers * self._worker_dpus)
        self.dpu_seconds += (end - start) * workers * self._worker_dpus
