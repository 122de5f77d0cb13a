"""The one place that talks to Spark: tasks in, results of successful task attempts out."""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING

from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException

from lake.errors import TransientError
from transform.run_task import run_partition

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import SparkSession

    from transform.task_model import Task, TaskResult

REASON_LENGTH = 500
TRACEBACK = "Traceback (most recent call last):"
PY4J = "An error occurred while calling"
WORKER_ENVIRONMENT = {
    "MALLOC_ARENA_MAX": "1",
    "MALLOC_MMAP_THRESHOLD_": str(32 << 20),
    "MALLOC_TRIM_THRESHOLD_": str(256 << 20),
}
"""For the Python workers: one heap, in which the memory of one row group serves the next and of which nothing is given
back to the system in between. glibc's heaps for each thread keep what one of them has freed from all others; memory
taken anew for every row group costs a tenth of its time and more."""


class JobFailedError(TransientError):
    """The Spark job failed or was cancelled; the message is the first cause as far as Spark tells it."""


class SparkJob:
    """One Spark job over tasks, each in a partition of its own; it can be cancelled from another thread."""

    def __init__(self, spark: SparkSession) -> None:
        self._context = spark.sparkContext
        # Spark gives it to the processes it starts for Python tasks, with every master.
        self._context.environment.update(WORKER_ENVIRONMENT)
        self._tag = f"convert-{secrets.token_hex(6)}"

    def run(self, tasks: Sequence[Task]) -> list[TaskResult]:
        """Results of the task attempts that Spark reports as successful, one for each task.

        Raises
        ------
        JobFailedError
            A task failed as often as Spark allows, or the job was cancelled.
        """
        if not tasks:
            return []
        self._context.addJobTag(self._tag)
        try:
            return self._context.parallelize(tasks, len(tasks)).mapPartitions(run_partition).collect()
        except (Py4JError, PySparkException) as error:
            raise JobFailedError(summary(str(error))) from error
        finally:
            self._context.removeJobTag(self._tag)

    def cancel(self) -> None:
        """Stop the job if it runs."""
        self._context.cancelJobsWithTag(self._tag)

    @property
    def alive(self) -> bool:
        """Whether the session can run another job at all."""
        return self._context._jsc is not None and not self._context._jsc.sc().isStopped()


def summary(text: str) -> str:
    """One line of Spark's many: what a Python task raised, else Spark's own first sentence."""
    for traceback in reversed(text.split(TRACEBACK)[1:]):
        frames = traceback.lstrip("\n").split("\n")
        raised = next((line for line in frames if line and not line[0].isspace()), None)
        if raised is not None:
            return raised[:REASON_LENGTH]
    lines = [line.lstrip(": ") for line in text.strip().splitlines()]
    return next((line for line in lines if not line.startswith(PY4J)), "Spark gave no reason")[:REASON_LENGTH]
