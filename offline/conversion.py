"""Converts files on all cores of this machine, by the same tasks as the jobs."""

import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path

from lake.commit import PendingObject, SourceCount
from lake.manifest import INFLATED_RATIO, Lane, Manifest, ObjectVersion, has_compressed_name, new_manifest_id
from lake.settings import ConvertSettings
from lake.time import iso_utc
from offline.input_files import InputFile, InputFiles, LocalFile
from offline.output_folder import GENERATION, LAKE, QUARANTINE, OutputFolder, StagedFiles
from transform.audit import audit
from transform.plan_attempt import divide_input
from transform.run_task import run_task
from transform.source import S3_REQUESTS, Requests
from transform.task_model import FileFailure, Task, TaskResult

TASKS_PER_CORE = 2
"""Maximum number of waiting or running tasks for each core; further groups wait."""
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


@dataclass(slots=True)
class _Group:
    manifest: Manifest
    folder: str | None
    tasks: tuple[Task, ...] = ()
    results: list[TaskResult] = field(default_factory=list)
    excluded: dict[ObjectVersion, str] = field(default_factory=dict)
    refused: dict[ObjectVersion, FileFailure] = field(default_factory=dict)


@dataclass
class Conversion:
    output: OutputFolder
    settings: ConvertSettings
    cores: int
    on_read: Callable[[int], None]
    region: str = ""

    def run(self, groups: Iterable[Sequence[InputFile]]) -> Iterator[GroupOutcome]:
        """Convert groups concurrently; published groups stay if the caller stops.

        ``on_read`` gets the bytes of each ended task, even if its group is converted again without a file. Raises
        ``OSError`` if the disk is full, or a folder may not be written to.
        """
        waiting = iter(groups)
        running: dict[Future[TaskResult], _Group] = {}
        with ThreadPoolExecutor(self.cores) as pool:
            try:
                while True:
                    while len(running) < self.cores * TASKS_PER_CORE and (files := next(waiting, None)) is not None:
                        now, named = datetime.now(UTC), tuple(item.file for item in files)
                        new = Manifest(new_manifest_id(now), Lane.BATCH, files[0].partition, iso_utc(now), named)
                        folder = next((item.folder for item in files if item.folder is not None), None)
                        self._submit(pool, _Group(new, folder), running)
                    if not running:
                        return
                    for future in wait(running, return_when=FIRST_COMPLETED).done:
                        yield from self._receive(pool, future, running)
            finally:
                pool.shutdown(wait=True, cancel_futures=True)

    def _submit(self, pool: Executor, group: _Group, running: dict[Future[TaskResult], _Group]) -> None:
        """Begin the tasks of a group, for all of its files that are not excluded."""
        files = [file for file in group.manifest.files if file not in group.excluded]
        size = sum(file.size * (INFLATED_RATIO if has_compressed_name(file.key) else 1) for file in files)
        min_tasks = max(1, min(self.cores, size // MIN_TASK_BYTES))
        group.results = []
        group.tasks = plan_tasks(group.manifest, files, self.settings, min_tasks, self.region, group.excluded)
        staging = self.output.staging(group.manifest.id)
        staging.mkdir(parents=True, exist_ok=True)
        for task in group.tasks:
            running[pool.submit(convert_task, task, staging)] = group

    def _receive(
        self, pool: Executor, future: Future[TaskResult], running: dict[Future[TaskResult], _Group]
    ) -> Iterator[GroupOutcome]:
        group, result = running.pop(future), future.result()
        group.results.append(result)
        self.output.write_back(group.manifest.id, (*result.objects, *result.quarantine))
        self.on_read(sum(split.split.size for split in result.splits))
        if len(group.results) < len(group.tasks):
            return
        failures = {item.file: item for result in group.results for item in result.failures}
        if failures:
            # Unreadable files go to the quarantine; files that another call may be able to read leave the manifest.
            for file, failure in failures.items():
                if failure.advice is None and failure.denied is None:
                    group.excluded[file] = failure.reason
                else:
                    group.refused[file] = failure
            files = tuple(file for file in group.manifest.files if file not in group.refused)
            group.manifest = replace(group.manifest, files=files)
            self.output.discard(group.manifest.id)
            self._submit(pool, group, running)
            if group.tasks:
                return
        yield self._publish(group)

    def _publish(self, group: _Group) -> GroupOutcome:
        manifest = group.manifest
        if not manifest.files:
            return GroupOutcome((), (), group.refused)
        sources = audit(manifest, group.tasks, group.results)
        ordered = sorted(group.results, key=lambda result: result.number)
        objects = tuple(item for result in ordered for item in result.objects)
        quarantine = [item for result in ordered for item in result.quarantine]
        self.output.commit(manifest, group.folder, sources, chain(objects, quarantine))
        return GroupOutcome(sources, objects, group.refused)


def plan_tasks(
    manifest: Manifest,
    files: Sequence[ObjectVersion],
    settings: ConvertSettings,
    min_tasks: int,
    region: str = "",
    excluded: Mapping[ObjectVersion, str] | None = None,
) -> tuple[Task, ...]:
    """Return the tasks of these files of a manifest, divided as in the jobs, but at least ``min_tasks``."""
    divided = divide_input(InputFiles(region), files, settings, None, min_tasks)
    task = Task(manifest.id, GENERATION, manifest.partition, 0, (), (), LAKE, QUARANTINE, region, settings)
    tasks = [replace(task, number=number, splits=splits) for number, splits in enumerate(divided)]
    last = [replace(task, number=len(tasks), excluded=tuple(excluded.items()))] if excluded else []
    return (*tasks, *last)


def convert_task(task: Task, staging: Path) -> TaskResult:
    """Runs in a thread: the reader and the writer are native, and let the other threads work."""
    with tempfile.TemporaryDirectory(dir=staging) as folder:
        is_local = all(isinstance(split.file, LocalFile) for split in task.splits)
        requests = DISK_REQUESTS if is_local else S3_REQUESTS
        return run_task(task, InputFiles(task.region), StagedFiles(staging), Path(folder), requests)
