"""In place of Spark and of the thread that renews leases: tasks upload small JSON objects, one after the other."""

from __future__ import annotations

import json
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lake.layout import lake_key, quarantine_key
from tests.model.world import LEASE
from transform.lease import LeaseKeeper
from transform.spark_job import JobFailedError
from transform.task_model import NUMBERS_PER_TASK, FileFailure, SplitResult, TaskResult
from transform.upload import Uploads

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.model.world import World
    from transform.task_model import Task


@dataclass
class FakeSparkSession:
    """In place of a Spark session: where a run's tasks write, and the run's id."""

    world: World
    s3: Any
    run: str


class FakeSparkJob:
    """In place of ``SparkJob``: uploads one small JSON object per task instead of Parquet, and its rejects.

    Leases are renewed between tasks, because no thread of a keeper runs.
    """

    alive = True

    def __init__(self, session: FakeSparkSession) -> None:
        self._session = session
        self.cancelled = False
        self.keeper: FakeLeaseKeeper | None = None

    def cancel(self) -> None:
        self.cancelled = True

    def run(self, tasks: Sequence[Task]) -> list[TaskResult]:
        results = []
        for task in tasks:
            self._spend_time()
            results.append(self._task(task))
            self._spend_time()
        return results

    def _spend_time(self) -> None:
        if self._session.world.slow:
            self._session.world.wait(LEASE * 0.6)
        if self.keeper is not None:
            self.keeper.renew_all()
        if self.cancelled:
            raise JobFailedError("cancelled: every lease is lost")

    def _task(self, task: Task) -> TaskResult:
        world = self._session.world
        keys = [split.split("/")[-1] for split in (split.file.key for split in task.splits)]
        failures = tuple(FileFailure(s.file, "truncated") for s in task.splits if s.file.key in world.unreadable)
        if failures:
            return TaskResult(task.manifest, task.number, (), (), (), (), failures, 1)
        if any(split.file.key in world.poisonous for split in task.splits):
            raise JobFailedError(f"MemoryError: one of {keys} needs too much memory")
        rows = [{"row": split.file.key, "run": self._session.run} for split in task.splits]
        rejects = [{"reject": split.file.key} for split in task.splits if split.file.key.endswith("a.ndjson")]
        number = task.number * NUMBERS_PER_TASK
        generation = (task.partition, task.manifest, task.generation)
        with tempfile.TemporaryDirectory() as folder, Uploads(self._session.s3) as uploads:
            objects = [_add(uploads, folder, task.lake_bucket, lake_key(*generation, number), rows)]
            quarantine = []
            if rejects:
                key = quarantine_key(*generation, number + 1)
                quarantine.append(_add(uploads, folder, task.quarantine_bucket, key, rejects))
            uploads.finish()
        splits = tuple(_split_result(split) for split in task.splits)
        published, rejected = (tuple(item.result() for item in group) for group in (objects, quarantine))
        return TaskResult(task.manifest, task.number, published, rejected, splits, ("a", "b"), (), 1)


def _split_result(split: Any) -> SplitResult:
    rejects = {"not an object": 1} if split.file.key.endswith("a.ndjson") else {}
    return SplitResult(split, 1 + len(rejects), 1, 0, rejects, split.size, False, None)


def _add(uploads: Uploads, folder: str, bucket: str, key: str, records: list[dict[str, str]]) -> Any:
    path = Path(folder) / key.rsplit("/", 1)[-1]
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return uploads.add(path, bucket, key, len(records))


class FakeLeaseKeeper(LeaseKeeper):
    """Renews leases when the job asks for it, not in a thread of its own."""

    def __enter__(self) -> FakeLeaseKeeper:
        job = getattr(self._on_all_lost, "__self__", None)
        if isinstance(job, FakeSparkJob):
            job.keeper = self
        return self

    def __exit__(self, *_: object) -> None:
        return
