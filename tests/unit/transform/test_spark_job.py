from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from transform.spark_job import SparkJob, failure_reason

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
    # Given a session that remembers in which pool its jobs were started
    properties: dict[str, str | None] = {}
    pools = []

    class Partitions:
        def mapPartitions(self, _: object) -> Partitions:  # noqa: N802
            return self

        def collect(self) -> list[Any]:
            pools.append(properties["spark.scheduler.pool"])
            return []

    context = SimpleNamespace(
        environment={},
        setLocalProperty=properties.__setitem__,
        addJobTag=lambda _: None,
        removeJobTag=lambda _: None,
        parallelize=lambda *_: Partitions(),
    )
    spark: Any = SimpleNamespace(sparkContext=context)
    task: Any = None
    # When
    SparkJob(spark, pool).run([task])
    # Then
    assert pools == [pool]
    assert properties == {"spark.scheduler.pool": None}
