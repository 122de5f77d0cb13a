"""A fault of one manifest, file or worker of a run delays no other."""

import os
import signal
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import pytest
from pyspark import TaskContext
from pyspark.sql import SparkSession

from lake.ledger import State
from lake.manifest import Lane
from tests.chaos.inline_spark import InlineSpark
from tests.integration.conversion_world import ConversionWorld
from transform import convert as convert_module
from transform import run_task
from transform.finalize import finalize
from transform.run_task import SplitDeadline, run_partition
from transform.task_model import Task, TaskResult


def test_a_poisonous_file_is_isolated_and_the_others_are_published(
    world: ConversionWorld, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Given a manifest with one file whose task always dies, and another manifest
    world.configure("batch", max_attempts=1)

    def crashing(tasks: Iterable[Task]) -> Iterator[TaskResult]:
        tasks = list(tasks)
        if any(split.file.key == "orders/1.json" for task in tasks for split in task.splits):
            raise ZeroDivisionError("the reader has a defect")
        yield from run_partition(tasks)

    monkeypatch.setattr("transform.spark_job.run_partition", crashing)
    bodies = [b'{"a":1}\n', b'{"a":"poison"}\n', b'{"a":2}\n']
    files = [world.put(f"orders/{number}.json", body) for number, body in enumerate(bodies)]
    manifest = world.enqueue(files)
    good = world.enqueue([world.put("orders/i.json", b'{"a":3}\n')])

    # When
    outcomes = world.convert([manifest, good], spark)

    # Then
    assert [outcome.state for outcome in outcomes[:2]] == ["SUPERSEDED", "DONE"]
    (failed,) = [outcome for outcome in outcomes if outcome.state == "FAILED"]
    assert world.row(failed.manifest).files == 1
    assert "ZeroDivisionError: the reader has a defect" in str(failed.reason)
    assert sorted(str(row["a"]) for row in world.lake()) == ["1", "2", "3"]


@pytest.mark.parametrize(
    ("step", "state"), [("claim_or_finish", "WAITING"), ("plan_attempt", "FAILED"), ("finalize", "FAILED")]
)
def test_an_unexpected_error_of_one_manifest(
    world: ConversionWorld, spark: SparkSession, monkeypatch: pytest.MonkeyPatch, step: str, state: str
) -> None:
    # Given: a step that always fails for one of two manifests, with an error that no code expects
    world.configure("batch", max_attempts=2)
    bad = world.enqueue([world.put("orders/bad.json", b'{"a":1}\n')])
    good = world.enqueue([world.put("orders/good.json", b'{"a":2}\n')])
    original = getattr(convert_module, step)

    def failing(context: Any, subject: Any, *rest: Any, **options: Any) -> Any:
        manifest = subject if isinstance(subject, str) else getattr(subject, "claim", subject).id
        if manifest == bad:
            raise ZeroDivisionError("a defect of this version")
        return original(context, subject, *rest, **options)

    monkeypatch.setattr(convert_module, step, failing)

    # When
    outcomes = world.convert([bad, good], spark)

    # Then
    assert [outcome.state for outcome in outcomes] == [state, "DONE"]
    assert "ZeroDivisionError: a defect of this version" in str(outcomes[0].reason)
    assert any("Traceback" in line and bad in line for line in world.log_lines)
    assert world.lake() == [{"a": "2"}]
    assert world.unfinished_uploads() == []


PATIENCE_SECONDS = 20


def test_a_slow_file_delays_only_its_own_manifest(
    world: ConversionWorld, spark: SparkSession, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    # Given a file whose task ends only after the other manifest of the run has been published
    quick = world.enqueue([world.put("orders/quick.json", b'{"a":1}\n')])
    slow = world.enqueue([world.put("orders/slow.json", b'{"a":2}\n')])
    published, late = str(tmp_path / "published"), str(tmp_path / "late")

    def observed_finalize(context: Any, attempt: Any, results: Any) -> Any:
        outcome = finalize(context, attempt, results)
        if attempt.manifest.id == quick:
            (tmp_path / "published").touch()
        return outcome

    def waiting(tasks: Iterable[Task]) -> Iterator[TaskResult]:
        tasks = list(tasks)
        deadline = time.monotonic() + PATIENCE_SECONDS
        while any(task.manifest == slow for task in tasks) and not Path(published).exists():
            if time.monotonic() > deadline:
                Path(late).touch()
                break
            time.sleep(0.05)
        yield from run_partition(tasks)

    monkeypatch.setattr(convert_module, "finalize", observed_finalize)
    monkeypatch.setattr("transform.spark_job.run_partition", waiting)
    # When
    outcomes = world.convert([quick, slow], spark)
    # Then
    assert not Path(late).exists()
    assert [outcome.state for outcome in outcomes] == ["DONE", "DONE"]
    assert [world.row(manifest).tries for manifest in (quick, slow)] == [1, 1]
    assert sorted(str(row["a"]) for row in world.lake()) == ["1", "2"]


@pytest.mark.parametrize("uploaded", [False, True], ids=["before its uploads", "after its uploads"])
def test_a_killed_worker_loses_nothing(
    world: ConversionWorld, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, uploaded: bool
) -> None:
    # Given workers, each of which is killed by SIGKILL in the first attempt of its task
    killed = str(tmp_path)

    def dying(tasks: Iterable[Task]) -> Iterator[TaskResult]:
        context = TaskContext.get()
        assert context is not None
        results = list(run_partition(tasks)) if uploaded else None
        if context.attemptNumber() == 0:
            Path(killed, str(context.partitionId())).touch()
            os.kill(os.getpid(), signal.SIGKILL)
        yield from results if results is not None else run_partition(tasks)

    monkeypatch.setattr("transform.spark_job.run_partition", dying)
    world.configure("convert", split_bytes=12, target_file_bytes=12)
    manifest = world.enqueue([world.put(f"orders/{number}.json", b'{"a":1}\nbroken\n{"a":2}\n') for number in range(2)])
    # When
    world.convert([manifest], spark)
    # Then
    assert list(tmp_path.iterdir())
    assert world.row(manifest).state == State.DONE
    assert sorted(str(row["a"]) for row in world.lake()) == ["1", "1", "2", "2"]
    assert len(world.quarantine()) == 2
    # And the uploads of the killed attempts, which nobody reads, are left to the sweep
    assert bool(world.unfinished_uploads()) == uploaded


@dataclass
class Processor:
    """The processor time of the tasks, which run in this process: reading a slow file costs 400 seconds."""

    seconds: float = 0.0
    reads: int = 0

    def read(self, key: str) -> None:
        if "slow" in key:
            self.seconds += 400
            self.reads += 1


@pytest.fixture
def inline_spark() -> Any:
    return InlineSpark(Random(1))


@pytest.fixture
def processor(monkeypatch: pytest.MonkeyPatch) -> Processor:
    processor = Processor()

    class Deadline(SplitDeadline):
        def add(self, piece: memoryview) -> None:
            processor.read(self._split.file.key)
            super().add(piece)

    monkeypatch.setattr(run_task, "SplitDeadline", Deadline)
    monkeypatch.setattr(run_task, "thread_time", lambda: processor.seconds)
    return processor


def enqueue(world: ConversionWorld, *names: str, urgent: bool = False) -> str:
    files = [world.put(f"orders/{name}.json", b'{"a":"%s"}\n' % name.encode()) for name in names]
    return world.enqueue(files, Lane.STREAM, urgent=urgent)


def test_a_slow_file_leaves_the_stream_and_its_neighbours_are_published(
    world: ConversionWorld, processor: Processor, inline_spark: Any
) -> None:
    # Given a manifest of the stream lane that may be tried once, with slow files
    world.configure("batch", max_attempts=1)
    mixed = enqueue(world, "a", "slow-1", "slow-2", "slow-3", "slow-4", "slow-5", urgent=True)

    # When
    outcomes = world.convert([mixed], inline_spark)

    # Then the slow ones are a manifest of the batch lane with all its tries, and this run has published the other
    source = world.row(mixed)
    slow, rest = source.superseded_by
    assert [(item.manifest, item.state) for item in outcomes] == [(mixed, "SUPERSEDED"), (rest, "DONE")]
    assert "stream.latency_goal_seconds" in str(source.reason)
    row = world.row(slow)
    assert (row.state, row.lane, row.files, row.tries, row.urgent) == ("QUEUED", Lane.BATCH, 5, 0, False)
    assert world.row(rest).urgent
    assert world.lake() == [{"a": "a"}]
    assert world.unfinished_uploads() == []

    # And five slow files took no longer than two: the others were not even read
    assert processor.reads == 2

    # When a run of the batch lane has time for them, Then they are published
    world.configure("convert", min_bytes_per_second=0)
    world.convert([slow], inline_spark, "run-2")
    assert len(world.lake()) == 6
    assert world.quarantine() == []


def test_a_manifest_of_slow_files_alone_goes_to_the_batch_lane_as_it_is(
    world: ConversionWorld, processor: Processor, inline_spark: Any
) -> None:
    manifest = enqueue(world, "slow-1")
    (outcome,) = world.convert([manifest], inline_spark)
    (successor,) = world.row(manifest).superseded_by
    assert (outcome.state, world.row(successor).lane, world.row(successor).tries) == ("SUPERSEDED", Lane.BATCH, 0)
    assert processor.reads == 1
