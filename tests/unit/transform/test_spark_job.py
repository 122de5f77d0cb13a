from __future__ import annotations

import pytest

from transform.spark_job import failure_reason

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
