"""In place of Spark and of the thread that renews leases: tasks upload small JSON objects, one after the other."""

from __future__ import annotations

import json
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from botocore.exceptions import BotoCoreError, ClientError

from lake.errors import TransientError
from lake.layout import lake_key, quarantine_key
from tests.model.clients import access_denied, may_read
from tests.model.world import LEASE, name_of
from transform.claim_manifest import LeaseKeeper
from transform.give_up import fault_of
from transform.quarantine_writer import QuarantineContent, file_record
from transform.source import DeniedFileError
from transform.spark_job import JobFailedError
from transform.task_model import NUMBERS_PER_TASK, FileFailure, SplitResult, TaskFault, TaskResult
from transform.upload import Uploads

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lake.manifest import ObjectVersion
    from tests.model.world import World
    from transform.task_model import Split, Task

WRONG_COUNTS = (
    "file that no task has read",
    "row that was read and not written",
    "bytes that were not read",
    "line that is nothing",
)
WRONG_RESULTS = ("task without a result", "task with two results", *WRONG_COUNTS)
"""How the results of a Spark job can be wrong. With ``WRONG_COUNTS`` its tasks have lost the lines of their files."""

WIDE_COLUMNS = 700
COLUMN_NAME_BYTES = 199
"""With three files in one dataset, the names need more room than an item has."""
MEMORY = next((folder for folder in ("/dev/shm",) if Path(folder).is_dir()), None)
"""A folder that is not on a disk, where the system has one: each history makes several folders and removes them."""


@dataclass
class FakeSparkSession:
    """In place of a Spark session: where a run's tasks write, the run's id, and what renews its leases."""

    world: World
    s3: Any
    run: str
    keepers: list[FakeLeaseKeeper] = field(default_factory=list)


class FakeSparkJob:
    """In place of ``SparkJob``: uploads one small JSON object per task instead of Parquet, and its rejects.

    Leases are renewed between tasks, because no thread of a keeper runs.
    """

    alive = True

    def __init__(self, session: FakeSparkSession, _pool: str | None = None) -> None:
        self._session = session

    def run(self, tasks: Sequence[Task]) -> list[TaskResult | TaskFault]:
        wrong_results = self._session.world.wrong_results
        wrong = wrong_results.pop(0) if wrong_results else ""
        results: list[TaskResult | TaskFault] = []
        for task in tasks:
            self._spend_time()
            results.append(self._run_partition(task, wrong))
            self._spend_time()
        if wrong == "task without a result":
            return results[:-1]
        return [*results, results[0]] if wrong == "task with two results" else results

    def _spend_time(self) -> None:
        if self._session.world.slow:
            self._session.world.wait(LEASE * 0.6)
        for keeper in [*self._session.keepers]:
            keeper.renew_all()

    def _run_partition(self, task: Task, wrong: str) -> TaskResult | TaskFault:
        """A fault of the environment is a result, as ``transform.run_task`` makes it."""
        try:
            return self._task(task, wrong)
        except (TransientError, BotoCoreError, ClientError) as error:
            fault = fault_of(error)
            if fault is None:
                raise
            return TaskFault(task.manifest, fault)

    def _task(self, task: Task, wrong: str) -> TaskResult:
        world = self._session.world
        files = [split.file for split in task.splits]
        denied = tuple(file for file in files if not may_read(world.denied, file))
        failures = tuple(
            FileFailure(file, "truncated")
            for file in files
            if file not in denied and (file.key in world.unreadable or not world.s3.has(file))
        )
        failures += tuple(FileFailure(file, "denied", fault_of(_denied_read())) for file in denied)
        if failures:
            unread = {failure.file for failure in failures}
            read = tuple(_split_result(split, "") for split in task.splits if split.file not in unread)
            return TaskResult(task.manifest, task.number, (), (), read, (), failures, 1)
        if any(file.key in world.poisonous for file in files):
            names = [file.key.split("/")[-1] for file in files]
            raise JobFailedError(f"MemoryError: one of {names} needs too much memory")
        lost = wrong in WRONG_COUNTS
        rows = [{"row": name_of(file), "run": self._session.run} for file in files if not lost]
        rejected_files = [file for file in files if has_reject(file) and not lost]
        rejects = [{"reject": name_of(file)} for file in rejected_files]
        rejects += [file_record(file, reason) for file, reason in task.excluded]
        number = task.number * NUMBERS_PER_TASK
        generation = (task.partition, task.manifest, task.generation)
        with tempfile.TemporaryDirectory(dir=MEMORY) as folder, Uploads(self._session.s3) as uploads:
            objects, quarantine = list[Any](), list[Any]()
            if files:
                objects.append(_add(uploads, folder, task.lake_bucket, lake_key(*generation, number), rows))
            if rejects:
                key = quarantine_key(*generation, number + 1)
                quarantine.append(_add(uploads, folder, task.quarantine_bucket, key, rejects))
            uploads.finish()
        splits = tuple(_split_result(split, wrong) for split in task.splits)
        published, rejected = (tuple(item.result() for item in group) for group in (objects, quarantine))
        if wrong == "file that no task has read":
            splits = ()
        contents = tuple(_content(rejected_files, task, item.size) for item in rejected)
        columns = _new_columns(task, files) if world.wide else ("a", "b")
        return TaskResult(task.manifest, task.number, published, rejected, splits, columns, (), 1, contents)


def has_reject(file: ObjectVersion) -> bool:
    """Whether a line of the file goes to the quarantine."""
    return file.key.endswith("a.ndjson")


def _new_columns(task: Task, files: Sequence[ObjectVersion]) -> tuple[str, ...]:
    """Columns of the files, as many as the reader's limit lets a task add to the known ones."""
    names = [f"{file.key}-{number}".rjust(COLUMN_NAME_BYTES, "x") for file in files for number in range(WIDE_COLUMNS)]
    limit = max(task.settings.column_limit, len(task.known_columns))
    new = [name for name in names if name not in task.known_columns]
    return tuple(new[: limit - len(task.known_columns)])


def _split_result(split: Split, wrong: str) -> SplitResult:
    rejects = {"not an object": 1} if has_reject(split.file) else {}
    lines, rows, size = 1 + len(rejects), 1, split.size
    if wrong in WRONG_COUNTS:
        rejects, rows = {}, 0
    if wrong == "row that was read and not written":
        lines = rows = 1
    if wrong == "bytes that were not read":
        lines, size = 0, size - 1
    return SplitResult(split, lines, rows, 0, rejects, size, False, None)


def _content(rejected: Sequence[ObjectVersion], task: Task, size: int) -> QuarantineContent:
    counts = {("line", file.uri, file.version, "not an object"): 1 for file in rejected}
    counts |= {("file", file.uri, file.version, reason): 1 for file, reason in task.excluded}
    return QuarantineContent(size, len(counts), counts)


def _add(uploads: Uploads, folder: str, bucket: str, key: str, records: list[dict[str, Any]]) -> Any:
    path = Path(folder) / key.rsplit("/", 1)[-1]
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return uploads.add(path, bucket, key, len(records))


@dataclass(frozen=True)
class FakeSource:
    """In place of the source that the preflight reads."""

    world: World

    def fetch(self, file: ObjectVersion, start: int, end: int) -> bytes:
        if not may_read(self.world.denied, file):
            raise _denied_read()
        return b"x" * (end - start)


def _denied_read() -> DeniedFileError:
    """As ``transform.source`` raises it."""
    error = DeniedFileError("denied")
    error.__cause__ = access_denied("GetObject")
    return error


class FakeLeaseKeeper(LeaseKeeper):
    """Renews leases when the job asks for it, not in a thread of its own."""

    def __enter__(self) -> FakeLeaseKeeper:
        self._keepers.append(self)
        return self

    def __exit__(self, *_: object) -> None:
        self._keepers.remove(self)

    @property
    def _keepers(self) -> list[FakeLeaseKeeper]:
        spark: Any = self._context.spark
        return spark.keepers
