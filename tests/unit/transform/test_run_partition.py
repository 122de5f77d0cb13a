"""A worker reports a fault of the environment as data, and raises everything else."""

from __future__ import annotations

import errno
import pickle
from typing import Any

import pytest

from lake.manifest import Partition
from lake.settings import ConvertSettings
from transform import run_task as module
from transform.run_task import run_partition
from transform.task_model import Task, TaskFault

TASK = Task(
    "m", 1, Partition("orders", "2026-11-01", 0), 0, (), (), "lake", "quarantine", "eu-central-1", ConvertSettings()
)


def fail_with(monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    def failing(*_: Any) -> Any:
        raise error

    monkeypatch.setattr(module, "run_task", failing)
    monkeypatch.setattr(module, "s3_client", lambda _: None)


def test_a_full_disk_is_a_result_that_spark_can_carry(monkeypatch: pytest.MonkeyPatch) -> None:
    fail_with(monkeypatch, OSError(errno.ENOSPC, "no space left on device"))
    (result,) = pickle.loads(pickle.dumps(list(run_partition([TASK]))))
    assert isinstance(result, TaskFault)
    assert result.manifest == "m"
    assert result.fault.cause.startswith("the disk of a worker is full")


def test_a_defect_is_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    fail_with(monkeypatch, ZeroDivisionError())
    with pytest.raises(ZeroDivisionError):
        list(run_partition([TASK]))
