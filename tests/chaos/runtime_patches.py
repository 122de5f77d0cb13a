"""Histories in one process, fast and repeatable: no back-off, one thread at a time, clients created once."""

import contextlib
import functools
import logging
import os
import time
import types
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import botocore.endpoint

import router.telemetry
import transform.clients
import transform.run_task
from router.telemetry import logger, metrics
from tests.chaos import injection
from tests.chaos.history import Report, run_history
from tests.chaos.processes import clients

MISSING = object()


class TimeWithoutSleep(types.ModuleType):
    """The module ``time``, but ``sleep`` returns at once."""

    def __init__(self) -> None:
        super().__init__("time")

    def __getattr__(self, name: str) -> Any:
        return getattr(time, name)

    @staticmethod
    def sleep(_seconds: float) -> None:
        """No back-off between two attempts."""


_start_pool = ThreadPoolExecutor.__init__


def _start_pool_of_one(self: ThreadPoolExecutor, _max_workers: int | None = None, *more: Any, **options: Any) -> None:
    """Work of any pool is done in the order in which it was submitted, so the n-th request is always the same one."""
    _start_pool(self, 1, *more, **{name: value for name, value in options.items() if name != "max_workers"})


@contextlib.contextmanager
def installed() -> Iterator[None]:
    """Patch this process while histories run; afterwards every attribute has its old value."""
    logs = logging.getLogger(router.telemetry.logger.name or "")
    level = logs.level
    changes = [
        *injection.patches(),
        (botocore.endpoint, "time", TimeWithoutSleep()),
        (ThreadPoolExecutor, "__init__", _start_pool_of_one),
        (transform.run_task, "s3_client", functools.cache(transform.clients.s3_client)),
        (router.telemetry.metrics, "add_metric", lambda **_: None),
    ]
    originals = [(owner, name, vars(owner).get(name, MISSING)) for owner, name, _ in changes]
    for owner, name, value in changes:
        setattr(owner, name, value)
    logs.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        logs.setLevel(level)
        for owner, name, value in originals:
            if value is MISSING:
                delattr(owner, name)
            else:
                setattr(owner, name, value)


def connect_to(environment: Mapping[str, str]) -> None:
    """Send every AWS request of this process to the local cloud of ``environment``; silence logs and metrics."""
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        del os.environ[name]
    os.environ.update(environment)
    logger.setLevel("CRITICAL")
    metrics.add_metric = lambda **_: None  # type: ignore[method-assign]


def play(seed: int) -> Report:
    """One history in this process."""
    with installed():
        return run_history(clients(), seed)
