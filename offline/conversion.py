"""Converts files on all cores of this machine, by the same tasks as the jobs."""

import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from itertools import islice
from pathlib import Path

from lake.commit import PendingObject, SourceCount
from lake.manifest import INFLATED_RATIO, Lane, Manifest, ObjectVersion, has_compressed_name, new_manifest_id
from lake.settings import ConvertSettings
from lake.time import iso_utc
from offline.input_files import InputFile, InputFiles, LocalFile
from offline.output_folder import GENERATION, LAKE, QUARANTINE, OutputFolder, stage_file, synchronize
from transform.audit import audit
from transform.plan_attempt import divide_input
from transform.run_task import run_task
from transform.source import S3_REQUESTS, Requests
from transform.task_model import FileFailure, Task, TaskResult

GROUPS_PER_CORE = 2
"""Maximum number of groups for each core that are converted at a time; further groups wait."""
DISK_THREADS = 4
MIN_TASK_BYTES = 32 << 20
"""Minimum NDJSON of a task: another core is not worth smaller Parquet files."""
DISK_REQUESTS = Requests(4, 32)
"""A task of files of 3.5 kB takes 0.7 of the processor time that it takes with ``S3_REQUESTS``."""


@dataclass(frozen=True, slots=True)
class GroupOutcome:
    sources: tuple[SourceCount, ...]
    objects: tuple[PendingObject, ...]
    refused: Mapping[ObjectVersion, FileFailure]
    """Files that cannot be read now: they are left out and not converted."""


@dataclass
class Conversion:
    output: OutputFolder
    settings: ConvertSettings
    cores: int
    on_read: Callable[[int], None]
    region: str = ""

    def run(self, groups: Iterable[Sequence[InputFile]]) -> Iterator[GroupOutcome]:
        """Convert groups concurrently; published groups stay if the caller stops.

        ``on_read`` gets the bytes of each ended task in its thread, even if its group is converted again without a
        file. Raises ``OSError`` if the disk is full, or a folder may not be written to.
        """
        waiting, running, limit = iter(groups), set[Future[GroupOutcome]](), self.cores * GROUPS_PER_CORE
        with (
            ThreadPoolExecutor(limit) as pool_of_groups,
            ThreadPoolExecutor(self.cores) as pool,
            ThreadPoolExecutor(DISK_THREADS) as disk,
        ):
            try:
                while True:
                    following = islice(waiting, limit - len(running))
                    running |= {pool_of_groups.submit(self._convert, pool, disk, files) for files in following}
                    if not running:
                        return
                    done, running = wait(running, return_when=FIRST_COMPLETED)
                    for future in done:
                        yield future.result()
            finally:
                pool.shutdown(wait=True, cancel_futures=True)

    def _convert(self, pool: Executor, disk: Executor, files: Sequence[InputFile]) -> GroupOutcome:
        """Convert the files of a group, without the ones that fail, and publish the result."""
        now, folder = datetime.now(UTC), next((item.folder for item in files if item.folder is not None), None)
        named = tuple(item.file for item in files)
        manifest = Manifest(new_manifest_id(now), Lane.BATCH, files[0].partition, iso_utc(now), named)
        excluded: dict[ObjectVersion, str] = {}
        refused: dict[ObjectVersion, FileFailure] = {}
        while True:
            left = [file for file in manifest.files if file not in excluded]
            size = sum(file.size * (INFLATED_RATIO if has_compressed_name(file.key) else 1) for file in left)
            min_tasks = max(1, min(self.cores, size // MIN_TASK_BYTES))
            tasks = plan_tasks(manifest, left, self.settings, min_tasks, self.region, excluded)
            self.output.staging(manifest.id).mkdir(parents=True, exist_ok=True)
            written: list[Future[None]] = []
            results = list(pool.map(partial(self._run_task, disk, written), tasks))
            failures = {item.file: item for result in results for item in result.failures}
            if not failures:
                break
            # Unreadable files go to the quarantine; files that another call may be able to read leave the manifest.
            for file, failure in failures.items():
                if failure.advice is None and failure.denied is None:
                    excluded[file] = failure.reason
                else:
                    refused[file] = failure
            manifest = replace(manifest, files=tuple(file for file in manifest.files if file not in refused))
            self.output.discard(manifest.id)
        if not manifest.files:
            return GroupOutcome((), (), refused)
        sources = audit(manifest, tasks, results)
        for future in written:
            future.result()
        self.output.commit(manifest, folder, sources, [item for result in results for item in result.uploaded])
        return GroupOutcome(sources, tuple(item for result in results for item in result.objects), refused)

    def _run_task(self, disk: Executor, written: list[Future[None]], task: Task) -> TaskResult:
        staging = self.output.staging(task.manifest)
        result = convert_task(task, staging)
        # The objects are written to the disk while other tasks convert.
        written += [disk.submit(synchronize, staging / item.bucket / item.key) for item in result.uploaded]
        self.on_read(sum(split.split.size for split in result.splits))
        return result


def plan_tasks(
    manifest: Manifest,
    files: Sequence[ObjectVersion],
    settings: ConvertSettings,
    min_tasks: int,
    region: str = "",
    excluded: Mapping[ObjectVersion, str] | None = None,
) -> tuple[Task, ...]:
    """Return the tasks of these files of a manifest, divided as in the jobs, but at least ``min_tasks``."""
    divided = divide_input(InputFiles(region).fetch, files, settings, None, min_tasks)
    task = Task(manifest.id, GENERATION, manifest.partition, 0, (), (), LAKE, QUARANTINE, region, settings)
    tasks = [replace(task, number=number, splits=splits) for number, splits in enumerate(divided)]
    last = [replace(task, number=len(tasks), excluded=tuple(excluded.items()))] if excluded else []
    return (*tasks, *last)


def convert_task(task: Task, staging: Path) -> TaskResult:
    """Runs in a thread: the reader and the writer are native, and let the other threads work."""
    with tempfile.TemporaryDirectory(dir=staging) as folder:
        is_local = all(isinstance(split.file, LocalFile) for split in task.splits)
        requests = DISK_REQUESTS if is_local else S3_REQUESTS
        return run_task(task, InputFiles(task.region).fetch, partial(stage_file, staging), Path(folder), requests)
