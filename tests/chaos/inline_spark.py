"""The part of Spark's API that a conversion uses, in this process: tasks die, are retried and run twice."""

import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from random import Random
from typing import Any

from pyspark.errors import PySparkException

from tests.chaos.injection import CURRENT, Actor, Fault, Killed, acting_as

MAX_ATTEMPTS = 2
SPECULATION_RATE = 0.05


class Worker(Actor):
    """The Python worker of one task attempt. The driver survives its death, unless the fault kills both."""

    def __init__(self, driver: Actor) -> None:
        super().__init__(f"{driver.name} worker", driver.faults, driver.counts)
        # The other threads of a driver that was killed start no task that converts.
        self._driver, self.dead = driver, driver.dead

    def kill(self, fault: Fault) -> None:
        self.dead = True
        if fault.action == "kill":
            self._driver.kill(fault)
        raise Killed

    def stall(self) -> None:
        self._driver.stall()

    def fired(self, fault: Fault) -> bool:
        return self._driver.fired(fault)


class InlineSpark:
    """A substitute for a Spark session."""

    def __init__(self, random: Random, before_tasks: Callable[[], None] = lambda: None) -> None:
        self.sparkContext = self
        self._jsc = self
        self.environment: dict[str, str] = {}
        self._random = random
        self._before_tasks = before_tasks

    def sc(self) -> "InlineSpark":
        return self

    def isStopped(self) -> bool:  # noqa: N802
        return False

    def setLocalProperty(self, _name: str, _value: str | None) -> None:  # noqa: N802
        return

    def parallelize(self, tasks: Sequence[Any], slices: int) -> "InlineJob":
        assert len(tasks) == slices
        return InlineJob(tasks, self._random, self._before_tasks)


class InlineJob:
    """A substitute for an RDD: one job over tasks, each in its own partition."""

    def __init__(self, tasks: Sequence[Any], random: Random, before_tasks: Callable[[], None]) -> None:
        self._tasks = tasks
        self._random = random
        self._before_tasks = before_tasks
        self._function: Callable[[Iterable[Any]], Iterator[Any]] = iter

    def mapPartitions(self, function: Callable[[Iterable[Any]], Iterator[Any]]) -> "InlineJob":  # noqa: N802
        self._function = function
        return self

    def collect(self) -> list[Any]:
        self._before_tasks()
        order = list(range(len(self._tasks)))
        self._random.shuffle(order)
        results = {number: self._task(pickle.dumps(self._tasks[number])) for number in order}
        return [result for number in sorted(results) for result in results[number]]

    def _task(self, task: bytes) -> list[Any]:
        results = self._attempts(task)
        # A speculative copy may win; then the uploads of the first one are never reported.
        return self._attempts(task) if self._random.random() < SPECULATION_RATE else results

    def _attempts(self, task: bytes) -> list[Any]:
        driver = CURRENT.get()
        for _ in range(MAX_ATTEMPTS):
            try:
                with acting_as(driver and Worker(driver)):
                    results = list(self._function(iter([pickle.loads(task)])))
            except Killed:
                if driver is not None and driver.dead:
                    raise
                error = "the worker died"
            except Exception as raised:  # Spark retries a task after any error
                error = f"{type(raised).__name__}: {raised}"
            else:
                received: list[Any] = pickle.loads(pickle.dumps(results))
                return received
        raise PySparkException(f"Job aborted: task failed {MAX_ATTEMPTS} times: {error}")
