"""What a Python worker of Spark runs: the tasks of one partition."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING
from zipimport import zipimporter

from transform.clients import s3_client
from transform.run_task import run_task
from transform.source import Source
from transform.upload import Uploads

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from transform.task_model import Task, TaskResult


def run_partition(tasks: Iterable[Task]) -> Iterator[TaskResult]:
    """The function that Spark calls for each partition, which holds one task. Raises what ``run_task`` raises."""
    source = Source()
    s3 = s3_client()
    for task in tasks:
        with Uploads(s3) as uploads, tempfile.TemporaryDirectory(prefix="hybrid-router-") as folder:
            yield run_task(task, source, uploads, Path(folder))
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
