"""A Python worker that is killed during its task costs an attempt of the task, and no row."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from lake.ledger import State
from tests.integration.conversion_world import ConversionWorld
from transform.run_task import run_partition

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

    from local.cloud import LocalCloud
    from transform.task_model import Task, TaskFault, TaskResult

BODY = b'{"a":1}\nbroken\n{"a":2}\n'


@pytest.mark.parametrize("uploaded", [False, True], ids=["before its uploads", "after its uploads"])
def test_a_killed_worker_loses_nothing(
    cloud: LocalCloud, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, uploaded: bool
) -> None:
    # Given workers, each of which is killed by SIGKILL in the first attempt of its task
    killed = str(tmp_path)

    def dying(tasks: Iterable[Task]) -> Iterator[TaskResult | TaskFault]:
        import os
        import signal
        from pathlib import Path

        from pyspark import TaskContext

        context = TaskContext.get()
        assert context is not None
        results = list(run_partition(tasks)) if uploaded else None
        if context.attemptNumber() == 0:
            Path(killed, str(context.partitionId())).touch()
            os.kill(os.getpid(), signal.SIGKILL)
        yield from results if results is not None else run_partition(tasks)

    monkeypatch.setattr("transform.spark_job.run_partition", dying)
    world = ConversionWorld.create(cloud)
    world.configure("convert", split_bytes=12, target_file_bytes=12)
    manifest = world.enqueue([world.put(f"orders/{number}.json", BODY) for number in range(2)])
    # When
    world.convert([manifest], spark)
    # Then
    assert list(tmp_path.iterdir())
    assert world.row(manifest).state == State.DONE
    assert sorted(str(row["a"]) for row in world.lake()) == ["1", "1", "2", "2"]
    assert len(world.quarantine()) == 2
    # And what the killed attempts have uploaded, which no one reads, is left to the sweep
    assert bool(world.unfinished_uploads()) == uploaded
