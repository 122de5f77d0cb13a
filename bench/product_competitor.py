"""hybrid-router's conversion inside Spark tasks, over local files: its splits, tasks, reader, writer and upload."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from bench.input_files import InputFiles
from lake.partition import Partition
from lake.settings import ConvertSettings
from sizing.local_objects import LocalSink, local_source, local_version
from sizing.peak_memory import peak_bytes, reset_peak_bytes
from transform.run_partition import forget_zip_importers
from transform.run_task import run_task
from transform.spark_job import WORKER_ENVIRONMENT
from transform.splits import pack_tasks, split_files
from transform.task_model import Task
from transform.upload import Uploads

if TYPE_CHECKING:
    from pyspark import SparkContext


TASKS = 2
"""One for each of two cores: in production a task reads 600 MB of such data, more than half of a large shape."""


def plan_tasks(files: InputFiles, settings: ConvertSettings) -> list[Task]:
    """The tasks that an attempt at a manifest of these files plans, while no column of the dataset is known."""
    versions = [local_version(path) for path in files.paths]
    compressed = versions if files.shape == "gzip" else []
    splits = split_files(versions, compressed, settings.split_bytes)
    ratio = min(TASKS, len(versions)) * settings.target_file_bytes / sum(split.size for split in splits)
    return [
        Task(
            "bench",
            1,
            Partition("bench", "2026-03-17", 0),
            number,
            task,
            (),
            "lake",
            "quarantine",
            "eu-central-1",
            settings,
        )
        for number, task in enumerate(pack_tasks(splits, settings.target_file_bytes, ratio))
    ]


def convert_by_spark(context: SparkContext, settings: ConvertSettings, files: InputFiles, output: Path) -> int:
    """Convert all files; returns the maximum of the tasks' peak memory in bytes."""
    tasks = plan_tasks(files, settings)
    convert = partial(convert_tasks, str(output))
    context.environment.update(WORKER_ENVIRONMENT)
    return max(context.parallelize(tasks, len(tasks)).mapPartitions(convert).collect())


def convert_tasks(output: str, tasks: Iterable[Task]) -> Iterator[int]:
    """The counterpart of ``run_partition`` for local files; yields each task's peak memory in bytes."""
    source, sink = local_source(), LocalSink(Path(output)).as_client()
    for task in tasks:
        reset_peak_bytes()
        # On the disk of the output, so that the sink can link a file instead of copying it.
        with Uploads(sink) as uploads, tempfile.TemporaryDirectory(prefix="task-", dir=output) as folder:
            result = run_task(task, source, uploads, Path(folder))
        if result.failures or any(split.rejects for split in result.splits):
            raise ValueError(f"task {task.number} failed or rejected lines: every generated line is valid")
        yield peak_bytes()
    forget_zip_importers()
