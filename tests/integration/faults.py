"""Clients whose calls can fail, lose their answer or be delayed, one chosen step at a time."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import boto3

from lake.ledger import Ledger
from transform.run_task import run_partition

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import pytest

    from transform.task_model import JobServices, Task, TaskFault, TaskResult

Fault = Callable[[int, str, Callable[[], Any]], Any]


class Crash(BaseException):
    """The process has died: no code of the product may catch this."""


class Steps:
    """Counts the calls of several clients; ``fault(number, operation, call)`` makes each call, or not."""

    def __init__(self, fault: Fault) -> None:
        self._fault = fault
        self._lock = threading.Lock()
        self.names: list[str] = []

    def wrap(self, services: JobServices) -> JobServices:
        """The same services, with clients whose every call is a step."""
        dynamodb = boto3.resource("dynamodb").meta.client
        ledger = Ledger.over(_Stepped(dynamodb, self), services.resources.ledger_table)  # type: ignore[arg-type]
        return replace(services, s3=_Stepped(services.s3, self), ledger=ledger)  # type: ignore[arg-type]

    def step(self, name: str, call: Callable[[], Any]) -> Any:
        with self._lock:
            number = len(self.names)
            self.names.append(name)
        return self._fault(number, name, call)


class _Stepped:
    def __init__(self, client: Any, steps: Steps) -> None:
        self._client = client
        self._steps = steps

    def __getattr__(self, name: str) -> Any:
        attribute = getattr(self._client, name)
        if name in ("exceptions", "meta", "get_paginator"):
            return attribute
        return lambda **request: self._steps.step(name, lambda: attribute(**request))


def crash_the_reader(monkeypatch: pytest.MonkeyPatch, key: str) -> None:
    """From now on every task that reads this key dies with an error that no code expects."""

    def crashing(tasks: Iterable[Task]) -> Iterator[TaskResult | TaskFault]:
        tasks = list(tasks)
        if any(split.file.key == key for task in tasks for split in task.splits):
            raise ZeroDivisionError("the reader has a defect")
        yield from run_partition(tasks)

    monkeypatch.setattr("transform.spark_job.run_partition", crashing)
