"""Spark jobs and their Python workers, which release memory and disk between tasks; results that fit the driver."""

import errno
import os
import pickle
import subprocess
import sys
import tempfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pytest
from ndjson_arrow import REASONS

from lake.documents import encode_document
from lake.manifest import ObjectVersion
from lake.settings.lanes import RUN_FILES
from tests.unit.lake.world import file_of
from tests.unit.transform.job import task_of
from transform.give_up import fault_of
from transform.quarantine_writer import read_back
from transform.run_task import task_folder
from transform.spark_job import WORKER_ENVIRONMENT, JobFailedError, SparkJob, failure_reason
from transform.task_model import Split, SplitResult, Task

CALL = "An error occurred while calling z:org.apache.spark.api.python.PythonRDD.collectAndServe."
ABORTED = (
    "Job aborted due to stage failure: Task 0 in stage 1.0 failed 4 times, most recent failure: Lost task 0.3 "
    "in stage 1.0 (TID 3) (localhost executor driver): "
)
RAISED = """org.apache.spark.api.python.PythonException: Traceback (most recent call last):
  File "task.py", line 1, in run
    call()
botocore.errorfactory.NoSuchBucket: it does not exist

The above exception was the direct cause of the following exception:

Traceback (most recent call last):
  File "task.py", line 2, in run
    call()
lake.errors.TransientError: could not be read:
second line of it

\tat org.apache.spark.api.python.PythonRunner
Driver stacktrace:
\tat org.apache.spark.scheduler.DAGScheduler
"""


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (f"{CALL}\n: {ABORTED}{RAISED}", "lake.errors.TransientError: could not be read:"),
        (
            f"{CALL}\n: org.apache.spark.SparkException: {ABORTED}ExecutorLostFailure\nDriver stacktrace:\n\tat x",
            f"org.apache.spark.SparkException: {ABORTED}ExecutorLostFailure",
        ),
        ("", "Spark gave no reason"),
    ],
)
def test_the_cause_is_one_line(text: str, line: str) -> None:
    assert failure_reason(text) == line


@pytest.mark.parametrize("pool", [None, "urgent"])
def test_a_job_is_in_its_pool_and_the_thread_keeps_no_property(pool: str | None) -> None:
    session = Session()
    SparkJob(session.spark, pool).run([task_with("a.ndjson", 1)])
    assert session.pools == [pool]
    assert session.properties == {"spark.scheduler.pool": None}


def test_the_longest_task_is_the_first_partition() -> None:
    # Given a task of a gzip file, which has fewer bytes than the others and takes longer
    session = Session()
    tasks = [task_with("a.ndjson", 3_000), task_with("b.ndjson", 4_000), task_with("c.ndjson.gz", 1_000)]
    # When
    SparkJob(session.spark).run(tasks)
    # Then
    assert session.tasks == ["c.ndjson.gz", "b.ndjson", "a.ndjson"]


def test_a_driver_that_cannot_write_its_tasks_has_a_job_that_failed() -> None:
    session = Session()
    session.collect = Mock(side_effect=FileNotFoundError(errno.ENOENT, "no folder", "/tmp/gone"))  # type: ignore[method-assign]
    with pytest.raises(JobFailedError, match="/tmp/gone") as raised:
        SparkJob(session.spark).run([task_with("a.ndjson", 1)])
    # And it uses up no attempt
    assert fault_of(raised.value) is not None


class Session:
    """A session that records its tasks, and the pool in which they were started."""

    def __init__(self) -> None:
        self.properties: dict[str, str | None] = {}
        self.pools: list[str | None] = []
        self.tasks: list[str] = []
        context = SimpleNamespace(
            environment={},
            setLocalProperty=self.properties.__setitem__,
            parallelize=self.parallelize,
        )
        self.spark: Any = SimpleNamespace(sparkContext=context)

    def parallelize(self, tasks: list[Task], _: int) -> "Session":
        self.tasks += [task.splits[0].file.key for task in tasks]
        return self

    def mapPartitions(self, _: object) -> "Session":  # noqa: N802
        return self

    def collect(self) -> list[Any]:
        self.pools.append(self.properties["spark.scheduler.pool"])
        return []


def task_with(key: str, size: int) -> Task:
    return task_of(Split(file_of(key, size), 0, size))


CODE = """
from pathlib import Path
from transform.run_task import tidy_worker

def resident():
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS:")) >> 10

before = resident()
blocks = [bytes([1]) * 200_000 for _ in range(500)]
kept = blocks[::50]
del blocks
held = resident()
tidy_worker()
print(before, held, resident())
"""


def test_memory_between_blocks_that_stay_is_released() -> None:
    environment = os.environ | WORKER_ENVIRONMENT
    answer = subprocess.run([sys.executable, "-c", CODE], env=environment, capture_output=True, text=True, check=True)
    before, held, after = map(int, answer.stdout.split())
    # Given 100 MB in one heap, with a fiftieth still in use: without trimming, all of it would stay allocated
    assert held - before > 70
    assert after - before < 30


WORKER = """
import sys
from transform.run_task import task_folder

with task_folder() as folder:
    (folder / "part").touch()
    print(folder, flush=True)
    sys.stdin.read()
"""


def test_a_killed_worker_leaves_nothing_on_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Given two workers with a task each; Spark kills the slower one
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with begin_worker(tmp_path) as slower, begin_worker(tmp_path) as other:
        left, used = (Path(str(worker.stdout and worker.stdout.readline()).strip()) for worker in (slower, other))
        slower.kill()
        slower.wait()
        assert (left / "part").exists()
        # When another task begins, Then the folder of the other one is left alone
        with task_folder() as second:
            assert sorted(tmp_path.iterdir()) == sorted([used, second])
        other.communicate()
    assert list(tmp_path.iterdir()) == []


def begin_worker(folder: Path) -> subprocess.Popen[str]:
    environment = os.environ | {"TMPDIR": str(folder)}
    pipe = subprocess.PIPE
    return subprocess.Popen([sys.executable, "-c", WORKER], env=environment, stdin=pipe, stdout=pipe, text=True)


MAX_RESULT_BYTES = 1 << 30
"""Default of ``spark.driver.maxResultSize`` (Spark's "Configuration")."""


def test_the_results_of_the_maximum_number_of_files_fit_the_driver(tmp_path: Path) -> None:
    # Given files with the longest keys and lines that are rejected for every reason, and their quarantine
    many, quarantine, splits = 1 << 40, tmp_path / "quarantine.jsonl", list[SplitResult]()
    with quarantine.open("wb") as stream:
        for number in range(500):
            key = f"{number:05d}".ljust(1024, "x")
            file = ObjectVersion("b" * 63, key, f"{number:032d}", many, "2026-11-20T09:30:00+00:00", f"{number:032d}")
            rejects, first = dict.fromkeys(REASONS, many), f"{REASONS[0]} at byte {many}"
            splits.append(SplitResult(Split(file, 0, many), many, 1, 1, rejects, many, False, first))
            names = {"kind": "lines", "source": file.uri, "version": file.version}
            stream.writelines(encode_document({**names, "reason": name, "count": many}) + b"\n" for name in REASONS)
    # When their results are sent to the driver
    size = len(pickle.dumps((splits, read_back(quarantine)))) / len(splits)
    # Then a job with the most files that the settings allow stays below Spark's limit
    assert size * RUN_FILES < MAX_RESULT_BYTES
