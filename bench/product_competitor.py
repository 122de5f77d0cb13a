"""hybrid-router's conversion inside Spark tasks, over local files: its splits, tasks, reader, writer and upload."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from bench.input_files import InputFiles
from lake.settings import ConvertSettings
from sizing.calibration import convert_task, divide
from transform.run_task import tidy_worker
from transform.spark_job import WORKER_ENVIRONMENT
from transform.task_model import Task, TaskResult

if TYPE_CHECKING:
    from pyspark import SparkContext

TASKS = 2
"""One for each of two cores: in production a task reads 600 MB of such data, more than half of a large shape."""


def convert_by_spark(context: SparkContext, settings: ConvertSettings, files: InputFiles, output: Path) -> int:
    """Convert all files; returns the maximum of the tasks' peak memory in bytes.

    Raises ``ValueError`` if a task failed or rejected a line: every generated line is valid.
    """
    whole = files.paths if files.shape == "gzip" else []
    tasks = divide(files.paths, whole, settings, min(TASKS, len(files.names)))
    context.environment.update(WORKER_ENVIRONMENT)
    answers = context.parallelize(tasks, len(tasks)).mapPartitions(partial(_convert, str(output))).collect()
    if any(result.failures or any(split.rejects for split in result.splits) for result, _ in answers):
        raise ValueError("a task failed or rejected lines: every generated line is valid")
    return max(peak for _, peak in answers)


def _convert(output: str, tasks: Iterable[Task]) -> Iterator[tuple[TaskResult, int]]:
    """The counterpart of ``run_partition`` for local files."""
    yield from (convert_task(output, task) for task in tasks)
    tidy_worker()
