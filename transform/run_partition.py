"""What a Python worker of Spark runs: the tasks of one partition."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from zipimport import zipimporter

from transform.clients import s3_client
from transform.environment_fault import fault_of
from transform.run_task import run_task
from transform.source import Source
from transform.task_model import Task, TaskFault, TaskResult
from transform.upload import Uploads


def run_partition(tasks: Iterable[Task]) -> Iterator[TaskResult | TaskFault]:
    """The function that Spark calls for each partition, which holds one task.

    A fault of the environment is a result: Spark's own tries would count it against the job. Anything else that
    ``run_task`` raises is raised.
    """
    for task in tasks:
        try:
            with (
                Uploads(s3_client(task.region)) as uploads,
                tempfile.TemporaryDirectory(prefix="hybrid-router-") as folder,
            ):
                yield run_task(task, Source.in_region(task.region, task.input_keys), uploads, Path(folder))
        except Exception as error:
            fault = fault_of(error)
            if fault is None:
                raise
            yield TaskFault(task.manifest, fault)
    forget_zip_importers()


def forget_zip_importers() -> None:
    """Saves the worker's next task about 0.07 s (docs/performance.md).

    Before every task Spark makes Python invalidate its import caches, and each importer of a zip on the path then reads
    the zip's directory again (Spark's own two zips have 1,500 files). An importer that is created again at the next
    import finds the directory in memory.
    """
    for path, importer in list(sys.path_importer_cache.items()):
        if isinstance(importer, zipimporter):
            del sys.path_importer_cache[path]
