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
import pytest

import router.telemetry
import transform.clients
import transform.run_task
from router.telemetry import logger, metrics
from tests.chaos import injection
from tests.chaos.history import Report, run_history
from tests.chaos.world import clients

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
        (botocore.endpoint, "time", types.SimpleNamespace(**{**vars(time), "sleep": lambda _: None})),
        (ThreadPoolExecutor, "__init__", _start_pool_of_one),
        (transform.run_task, "s3_client", functools.cache(transform.clients.s3_client)),
        (router.telemetry.metrics, "add_metric", lambda **_: None),
    ]
    logs.setLevel(logging.CRITICAL)
    try:
        with pytest.MonkeyPatch.context() as patch:
            for owner, name, value in changes:
                patch.setattr(owner, name, value)
            yield
    finally:
        logs.setLevel(level)


def connect_to(environment: Mapping[str, str]) -> None:
    """Send every AWS request of this process to the local cloud of ``environment``; silence logs and metrics."""
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        del os.environ[name]
    os.environ.update(environment)
    logger.setLevel("CRITICAL")
    metrics.add_metric = lambda **_: None  # type: ignore[method-assign]


def play(seed: int) -> Report:
    with installed():
        return run_history(clients(), seed)
