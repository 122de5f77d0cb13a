from __future__ import annotations

import errno
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pytest

from lake.manifest import ObjectVersion, Partition
from lake.settings import ConvertSettings
from transform.give_up import fault_of
from transform.spark_job import JobFailedError, SparkJob, failure_reason
from transform.task_model import Split, Task

CALL = "An error occurred while calling z:org.apache.spark.api.python.PythonRDD.collectAndServe."
ABORTED = (
    "Job aborted due to stage failure: Task 0 in stage 1.0 failed 4 times, most recent failure: Lost task 0.3 "
    "in stage 1.0 (TID 3) (localhost executor driver): "
)
RAISED = """org.apache.spark.api.python.PythonException: Traceback (most recent call last):
  File "task.py", line 1, in run
    call()
botocore.errorfactory.NoSuchBucket: it does not exist

The above exception was the direct cause of the following exception:

Traceback (most recent call last):
  File "task.py", line 2, in run
    call()
lake.errors.TransientError: could not be read:
second line of it

\tat org.apache.spark.api.python.PythonRunner
Driver stacktrace:
\tat org.apache.spark.scheduler.DAGScheduler
"""


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (f"{CALL}\n: {ABORTED}{RAISED}", "lake.errors.TransientError: could not be read:"),
        (
            f"{CALL}\n: org.apache.spark.SparkException: {ABORTED}ExecutorLostFailure\nDriver stacktrace:\n\tat x",
            f"org.apache.spark.SparkException: {ABORTED}ExecutorLostFailure",
        ),
        ("", "Spark gave no reason"),
    ],
)
def test_the_cause_is_one_line(text: str, line: str) -> None:
    assert failure_reason(text) == line


@pytest.mark.parametrize("pool", [None, "urgent"])
def test_a_job_is_in_its_pool_and_the_thread_keeps_no_property(pool: str | None) -> None:
    session = Session()
    SparkJob(session.spark, pool).run([task_of("a.ndjson", 1)])
    assert session.pools == [pool]
    assert session.properties == {"spark.scheduler.pool": None}


def test_the_longest_task_is_the_first_partition() -> None:
    # Given a task of a gzip file, which has fewer bytes than the others and takes longer
    session = Session()
    tasks = [task_of("a.ndjson", 3_000), task_of("b.ndjson", 4_000), task_of("c.ndjson.gz", 1_000)]
    # When
    SparkJob(session.spark).run(tasks)
    # Then
    assert session.tasks == ["c.ndjson.gz", "b.ndjson", "a.ndjson"]


def test_a_driver_that_cannot_write_its_tasks_has_a_job_that_failed() -> None:
    session = Session()
    session.collect = Mock(side_effect=FileNotFoundError(errno.ENOENT, "no folder", "/tmp/gone"))  # type: ignore[method-assign]
    with pytest.raises(JobFailedError, match="/tmp/gone") as raised:
        SparkJob(session.spark).run([task_of("a.ndjson", 1)])
    # And it uses up no attempt
    assert fault_of(raised.value) is not None


class Session:
    """A session that remembers its tasks, and in which pool they were started."""

    def __init__(self) -> None:
        self.properties: dict[str, str | None] = {}
        self.pools: list[str | None] = []
        self.tasks: list[str] = []
        context = SimpleNamespace(
            environment={},
            setLocalProperty=self.properties.__setitem__,
            parallelize=self.parallelize,
        )
        self.spark: Any = SimpleNamespace(sparkContext=context)

    def parallelize(self, tasks: list[Task], _: int) -> Session:
        self.tasks += [task.splits[0].file.key for task in tasks]
        return self

    def mapPartitions(self, _: object) -> Session:  # noqa: N802
        return self

    def collect(self) -> list[Any]:
        self.pools.append(self.properties["spark.scheduler.pool"])
        return []


def task_of(key: str, size: int) -> Task:
    file = ObjectVersion("input", key, "e", size, "2026-03-04T12:00:00Z", "v")
    partition = Partition("orders", "2026-03-04", 12)
    return Task("m", 1, partition, 0, (Split(file, 0, size),), (), "lake", "quarantine", "", ConvertSettings())
