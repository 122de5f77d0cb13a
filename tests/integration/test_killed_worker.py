"""A Python worker that is killed in the middle of its task costs an attempt of the task, and no row."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from lake.ledger import State
from tests.integration.conversion_world import Deployment
from transform.run_task import run_partition

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

    from local.cloud import LocalCloud
    from transform.task_model import Task, TaskResult

BODY = b'{"a":1}\nbroken\n{"a":2}\n'


@pytest.mark.parametrize("uploaded", [False, True], ids=["before its uploads", "after its uploads"])
def test_a_killed_worker_leaves_nothing_and_loses_nothing(
    cloud: LocalCloud, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, uploaded: bool
) -> None:
    # Given workers of which each is killed as by kill -9 in the first attempt of its task
    killed = str(tmp_path)

    def dying(tasks: Iterable[Task]) -> Iterator[TaskResult]:
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
    deployment = Deployment.create(cloud)
    deployment.configure(split_bytes=12, target_file_bytes=12)
    manifest = deployment.enqueue([deployment.put(f"orders/{number}.json", BODY) for number in range(2)])
    # When
    deployment.convert([manifest], spark)
    # Then
    assert list(tmp_path.iterdir())
    assert deployment.row(manifest).state == State.DONE
    assert sorted(str(row["a"]) for row in deployment.lake()) == ["1", "1", "2", "2"]
    assert len(deployment.quarantine()) == 2
    assert deployment.unfinished_uploads() == []
