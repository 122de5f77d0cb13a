"""Substitutes for Spark, the thread that renews leases, and thread pools: one work item after the other."""

import json
import tempfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest.mock import patch

from botocore.exceptions import BotoCoreError, ClientError

from lake.errors import TransientError
from lake.layout import lake_key, quarantine_key
from lake.manifest import ObjectVersion
from tests.model.world import LEASE, World, name_of
from transform.claim_manifest import LeaseKeeper
from transform.clients import AddFile
from transform.give_up import fault_of
from transform.quarantine_writer import QuarantineContent, file_record
from transform.spark_job import JobFailedError
from transform.task_model import NUMBERS_PER_TASK, FileFailure, Split, SplitResult, Task, TaskResult
from transform.upload import uploading

MEMORY = next((folder for folder in ("/dev/shm",) if Path(folder).is_dir()), None)
"""A folder in memory, if the system has one: each history makes several folders and removes them."""


@dataclass
class FakeSparkSession:
    """A substitute for a Spark session, with the target of a run's tasks, the run's id, and its lease keeper."""

    world: World
    s3: Any
    run: str
    keepers: "list[FakeLeaseKeeper]" = field(default_factory=list)


class FakeSparkJob:
    """A substitute for ``SparkJob``: uploads one small JSON object per task instead of Parquet, and its rejects.

    Leases are renewed between tasks, because no thread of a keeper runs.
    """

    alive = True

    def __init__(self, session: FakeSparkSession, _pool: str | None = None) -> None:
        self._session = session

    def run(self, tasks: Sequence[Task]) -> list[TaskResult]:
        results: list[TaskResult] = []
        for task in tasks:
            self._spend_time()
            results.append(self._run_partition(task))
            self._spend_time()
        return results

    def _spend_time(self) -> None:
        if self._session.world.slow:
            self._session.world.wait(LEASE * 0.6)
        for keeper in [*self._session.keepers]:
            keeper.renew_all()

    def _run_partition(self, task: Task) -> TaskResult:
        """A fault of the environment is a result, as ``transform.run_task`` makes it."""
        try:
            return self._task(task)
        except (TransientError, BotoCoreError, ClientError) as error:
            fault = fault_of(error)
            if fault is None:
                raise
            return TaskResult(task.manifest, task.number, (), (), (), (), (), 0, fault=fault)

    def _task(self, task: Task) -> TaskResult:
        world = self._session.world
        files = [split.file for split in task.splits]
        failures = tuple(
            FileFailure(file, "truncated") for file in files if file.key in world.unreadable or not world.s3.has(file)
        )
        if failures:
            unread = {failure.file for failure in failures}
            read = tuple(_split_result(split) for split in task.splits if split.file not in unread)
            return TaskResult(task.manifest, task.number, (), (), read, (), failures, 1)
        if any(file.key in world.poisonous for file in files):
            names = [file.key.split("/")[-1] for file in files]
            raise JobFailedError(f"MemoryError: one of {names} needs too much memory")
        rows = [{"row": name_of(file), "run": self._session.run} for file in files]
        rejected_files = [file for file in files if has_reject(file)]
        rejects = [{"reject": name_of(file)} for file in rejected_files]
        rejects += [file_record(file, reason) for file, reason in task.excluded]
        number = task.number * NUMBERS_PER_TASK
        generation = (task.partition, task.manifest, task.generation)
        with tempfile.TemporaryDirectory(dir=MEMORY) as folder, uploading(self._session.s3) as add_file:
            objects, quarantine = list[Any](), list[Any]()
            if files:
                objects.append(_add(add_file, folder, task.lake_bucket, lake_key(*generation, number), rows))
            if rejects:
                key = quarantine_key(*generation, number + 1)
                quarantine.append(_add(add_file, folder, task.quarantine_bucket, key, rejects))
            published, rejected = (tuple(item.result() for item in group) for group in (objects, quarantine))
        splits = tuple(_split_result(split) for split in task.splits)
        contents = tuple(_content(rejected_files, task, item.size) for item in rejected)
        return TaskResult(task.manifest, task.number, published, rejected, splits, ("a", "b"), (), 1, contents)


def has_reject(file: ObjectVersion) -> bool:
    """Whether a line of the file goes to the quarantine."""
    return file.key.endswith("a.ndjson")


def _split_result(split: Split) -> SplitResult:
    rejects = {"not an object": 1} if has_reject(split.file) else {}
    return SplitResult(split, 1 + len(rejects), 1, 0, rejects, split.size, False, None)


def _content(rejected: Sequence[ObjectVersion], task: Task, size: int) -> QuarantineContent:
    counts = {("line", file.uri, file.version, "not an object"): 1 for file in rejected}
    counts |= {("file", file.uri, file.version, reason): 1 for file, reason in task.excluded}
    return QuarantineContent(size, len(counts), counts)


def _add(add_file: AddFile, folder: str, bucket: str, key: str, records: list[dict[str, Any]]) -> Any:
    path = Path(folder) / key.rsplit("/", 1)[-1]
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return add_file(path, bucket, key, len(records))


class FakeSource:
    """A substitute for the source that the preflight reads."""

    def fetch(self, _file: ObjectVersion, start: int, end: int) -> bytes:
        return b"x" * (end - start)


class FakeLeaseKeeper(LeaseKeeper):
    """Renews leases when the job asks for it, not in its own thread."""

    def __enter__(self) -> "FakeLeaseKeeper":
        self._keepers.append(self)
        return self

    def __exit__(self, *_: object) -> None:
        self._keepers.remove(self)

    @property
    def _keepers(self) -> "list[FakeLeaseKeeper]":
        spark: Any = self._context.spark
        return spark.keepers


@contextmanager
def inline_pools() -> Iterator[None]:
    """Every ``ThreadPoolExecutor`` works as ``InlinePool`` does."""
    methods: Any = {name: value for name, value in vars(InlinePool).items() if callable(value)}
    with patch.multiple(ThreadPoolExecutor, create=True, **methods):
        yield


class InlinePool:
    """The part of ``ThreadPoolExecutor``'s API that the product uses."""

    def __init__(self, *_: Any, **__: Any) -> None:
        pass

    def __enter__(self) -> "InlinePool":
        return self

    def __exit__(self, *_: object) -> None:
        return

    def shutdown(self, **_: Any) -> None:
        return

    def map(self, function: Callable[..., Any], *columns: Any) -> Iterator[Any]:
        """An error of one item does not stop the work on the others."""
        done = [self.submit(function, *items) for items in zip(*columns, strict=False)]
        return (item.result() for item in done)

    def submit(self, function: Callable[..., Any], *arguments: Any) -> Future[Any]:
        done: Future[Any] = Future()
        try:
            done.set_result(function(*arguments))
        except Exception as error:
            done.set_exception(error)
        return done
