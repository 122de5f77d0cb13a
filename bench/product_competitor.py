"""hybrid-router's conversion inside Spark tasks, over local files: its splits, tasks, reader, writer and upload."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from bench.input_files import InputFiles
from bench.local_objects import LocalSink, local_source, local_version
from bench.peak_memory import peak_bytes, reset_peak_bytes
from lake.partition import Partition
from lake.settings import ConvertSettings
from transform.plan_attempt import pack_tasks, split_files
from transform.run_task import forget_zip_importers, run_task
from transform.spark_job import WORKER_ENVIRONMENT
from transform.task_model import Task, TaskResult
from transform.upload import Uploads

if TYPE_CHECKING:
    from pyspark import SparkContext

TASKS = 2
"""One for each of two cores: in production a task reads 600 MB of such data, more than half of a large shape."""


def convert_by_spark(context: SparkContext, settings: ConvertSettings, files: InputFiles, output: Path) -> int:
    """Convert all files; returns the maximum of the tasks' peak memory in bytes.

    Raises ``ValueError`` if a task failed or rejected a line: every generated line is valid.
    """
    whole = files.paths if files.shape == "gzip" else []
    tasks = _divide(files.paths, whole, settings, min(TASKS, len(files.names)))
    context.environment.update(WORKER_ENVIRONMENT)
    answers = context.parallelize(tasks, len(tasks)).mapPartitions(partial(_convert, str(output))).collect()
    if any(result.failures or any(split.rejects for split in result.splits) for result, _ in answers):
        raise ValueError("a task failed or rejected lines: every generated line is valid")
    return max(peak for _, peak in answers)


def _convert(output: str, tasks: Iterable[Task]) -> Iterator[tuple[TaskResult, int]]:
    """The counterpart of ``run_partition`` for local files."""
    yield from (_convert_task(output, task) for task in tasks)
    forget_zip_importers()


def _divide(files: Sequence[Path], whole: Sequence[Path], settings: ConvertSettings, number: int) -> list[Task]:
    """About this number of tasks; the files of ``whole`` are not split."""
    splits = split_files(list(map(local_version, files)), set(map(local_version, whole)), settings.split_bytes)
    ratio = number * settings.target_file_bytes / max(sum(split.size for split in splits), 1)
    partition = Partition("bench", "2026-01-01", 0)
    return [
        Task("bench", 1, partition, place, task, (), "lake", "quarantine", "eu-central-1", settings)
        for place, task in enumerate(pack_tasks(splits, settings.target_file_bytes, ratio))
    ]


def _convert_task(output: str, task: Task) -> tuple[TaskResult, int]:
    """The result of a task over local files, and the peak memory of this process meanwhile, in bytes."""
    sink = LocalSink(Path(output)).as_client()
    reset_peak_bytes()
    # On the disk of the output, so that the sink can link a file instead of copying it.
    with Uploads(sink) as uploads, tempfile.TemporaryDirectory(prefix="task-", dir=output) as folder:
        result = run_task(task, local_source(), uploads, Path(folder))
    return result, peak_bytes()
