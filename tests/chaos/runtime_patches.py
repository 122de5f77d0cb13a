"""Makes histories in one process fast and repeatable: no back-off, one thread at a time, clients created once."""

from __future__ import annotations

import contextlib
import functools
import logging
import time
import types
from typing import TYPE_CHECKING, Any

import botocore.endpoint

import lake.publish
import router.ownership.take
import router.plan.merge
import router.promote.handler
import router.telemetry
import transform.clients
import transform.convert
import transform.run_partition
from tests.chaos import injection

if TYPE_CHECKING:
    from collections.abc import Iterator

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


@contextlib.contextmanager
def installed() -> Iterator[None]:
    """Patch this process while histories run; afterwards every attribute has its old value."""
    logs = logging.getLogger(router.telemetry.logger.name or "")
    level = logs.level
    changes = [
        *injection.patches(),
        (botocore.endpoint, "time", TimeWithoutSleep()),
        (transform.convert, "DRIVER_THREADS", 1),
        (lake.publish, "PARALLEL_COMPLETIONS", 1),
        (router.ownership.take, "PARALLEL_REQUESTS", 1),
        (router.plan.merge, "PARALLEL_REQUESTS", 1),
        (router.promote.handler, "PARALLEL_REQUESTS", 1),
        (transform.run_partition, "s3_client", functools.cache(transform.clients.s3_client)),
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
