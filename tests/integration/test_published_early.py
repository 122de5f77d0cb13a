"""A manifest is published as soon as its own tasks have ended, whatever the other manifests of its run wait for."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from transform import convert as convert_module
from transform.finalize import finalize
from transform.run_task import run_partition

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import pytest
    from pyspark.sql import SparkSession

    from tests.integration.conversion_world import ConversionWorld
    from transform.task_model import Task, TaskFault, TaskResult

PATIENCE_SECONDS = 20


def test_a_slow_file_holds_up_its_own_manifest_only(
    world: ConversionWorld, spark: SparkSession, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    # Given a file whose task ends only when the other manifest of the run has been published
    quick = world.enqueue([world.put("orders/quick.json", b'{"a":1}\n')])
    slow = world.enqueue([world.put("orders/slow.json", b'{"a":2}\n')])
    published, late = str(tmp_path / "published"), str(tmp_path / "late")

    def observed_finalize(context: Any, attempt: Any, results: Any) -> Any:
        outcome = finalize(context, attempt, results)
        if attempt.manifest.id == quick:
            (tmp_path / "published").touch()
        return outcome

    def waiting(tasks: Iterable[Task]) -> Iterator[TaskResult | TaskFault]:
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
