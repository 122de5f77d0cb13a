"""Our own conversion inside Spark tasks: the product's splits, tasks, reader, writer and upload, over local files."""

from __future__ import annotations

import tempfile
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from bench.local_objects import LocalSink, local_source, local_version
from bench.measure import forget_peak, peak_bytes
from lake.partition import Partition
from transform.run_task import forget_zip_importers, run_task
from transform.spark_job import WORKER_ENVIRONMENT
from transform.splits import pack_tasks, split_files
from transform.task_model import Task
from transform.upload import Uploads

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pyspark import SparkContext

    from bench.data import Data
    from lake.settings import ConvertSettings

TASKS = 2
"""One for each of two cores: in production a task of such data has 600 MB, more than half of a large shape."""


def plan(data: Data, settings: ConvertSettings) -> list[Task]:
    """Tasks as an attempt at a manifest of these files would plan them; no column of the dataset is known yet."""
    files = [local_version(path) for path in data.paths]
    compressed = files if data.shape == "gzip" else []
    splits = split_files(files, compressed, settings.split_bytes)
    ratio = min(TASKS, len(files)) * settings.target_file_bytes / sum(split.size for split in splits)
    return [
        Task("bench", 1, Partition("bench", "2026-03-17", 0), number, task, (), "lake", "quarantine", settings)
        for number, task in enumerate(pack_tasks(splits, settings.target_file_bytes, ratio))
    ]


def convert_by_spark(context: SparkContext, settings: ConvertSettings, data: Data, output: Path) -> int:
    """Convert all of the data; the answer is the largest task's peak memory in bytes."""
    tasks = plan(data, settings)
    work = partial(convert_tasks, str(output))
    context.environment.update(WORKER_ENVIRONMENT)
    return max(context.parallelize(tasks, len(tasks)).mapPartitions(work).collect())


def convert_tasks(output: str, tasks: Iterable[Task]) -> Iterator[int]:
    """The same as the product's function of a partition, over local files; answers each task's peak memory."""
    source, sink = local_source(), LocalSink(Path(output)).as_client()
    for task in tasks:
        forget_peak()
        # On the output's disk, so that the sink need not copy.
        with Uploads(sink) as uploads, tempfile.TemporaryDirectory(prefix="task-", dir=output) as folder:
            result = run_task(task, source, uploads, Path(folder))
        if result.failures or any(split.rejects for split in result.splits):
            raise ValueError(f"task {task.number} failed or rejected lines: the data of this benchmark has none")
        yield peak_bytes()
    forget_zip_importers()
