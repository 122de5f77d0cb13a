"""Runs Spark jobs, which no other module does: takes tasks, returns the results of successful task attempts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException

from lake.errors import TransientError
from transform.run_task import run_partition
from transform.task_model import Task, TaskResult

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


MAX_REASON_CHARACTERS = 500
TRACEBACK_HEADER = "Traceback (most recent call last):"
PY4J_HEADER = "An error occurred while calling"
WORKER_ENVIRONMENT = {
    "MALLOC_ARENA_MAX": "1",
    "MALLOC_MMAP_THRESHOLD_": str(32 << 20),
    "MALLOC_TRIM_THRESHOLD_": str(256 << 20),
}
"""Environment of the Python workers: one heap that keeps the memory of a row group for the next. By default glibc has a
heap per thread, so that other threads cannot use freed memory. It also returns large blocks to the system, and getting
them again costs at least a tenth of a row group's time (docs/performance.md)."""


SCHEDULER_POOL = "spark.scheduler.pool"
"""Local property of the thread that starts a job (Spark, "Job Scheduling")."""


class JobFailedError(TransientError):
    """The Spark job failed; the message is the cause, if Spark reports one."""


class SparkJob:
    """Parallel Spark jobs over tasks; each task has a partition of its own.

    ``pool`` is the name of their scheduler pool; None for the default pool.
    """

    def __init__(self, spark: SparkSession, pool: str | None = None) -> None:
        self._context, self._pool = spark.sparkContext, pool
        # Spark passes it to the Python workers with any master.
        self._context.environment.update(WORKER_ENVIRONMENT)

    def run(self, tasks: Sequence[Task]) -> list[TaskResult]:
        """One result or fault for each task, from the task attempt that Spark reports as successful. Thread-safe.

        Spark starts tasks in the order of their partitions. The longest tasks come first, so that no task that began
        last prolongs the job. Raises ``JobFailedError`` if a task failed as often as Spark allows, or if PySpark could
        not write the tasks to the driver's disk.
        """
        if not tasks:
            return []
        self._context.setLocalProperty(SCHEDULER_POOL, self._pool)  # type: ignore[arg-type]
        try:
            ordered = sorted(tasks, key=lambda task: task.ndjson_bytes, reverse=True)
            return self._context.parallelize(ordered, len(ordered)).mapPartitions(run_partition).collect()
        except (Py4JError, PySparkException, OSError) as error:
            raise JobFailedError(failure_reason(str(error))) from error
        finally:
            self._context.setLocalProperty(SCHEDULER_POOL, None)  # type: ignore[arg-type]

    @property
    def alive(self) -> bool:
        """Whether the session can run another job."""
        return self._context._jsc is not None and not self._context._jsc.sc().isStopped()


def failure_reason(text: str) -> str:
    """One line of Spark's error text: the exception of the Python task, otherwise Spark's first line."""
    for traceback in reversed(text.split(TRACEBACK_HEADER)[1:]):
        frames = traceback.lstrip("\n").split("\n")
        exception = next((line for line in frames if line and not line[0].isspace()), None)
        if exception is not None:
            return exception[:MAX_REASON_CHARACTERS]
    lines = [line.lstrip(": ") for line in text.strip().splitlines()]
    return next((line for line in lines if not line.startswith(PY4J_HEADER)), "Spark gave no reason")[
        :MAX_REASON_CHARACTERS
    ]
