"""What makes histories in one process quick and repeatable: no back-off, one thread at a time, clients made once."""

from __future__ import annotations

import functools
import logging
import time
import types
from typing import Any

import botocore.endpoint

import lake.publish
import router.plan.merge
import router.route.own
import transform.clients
import transform.convert
import transform.lease
import transform.task
from tests.chaos import injection


class QuickTime(types.ModuleType):
    """The module ``time`` whose sleep returns at once."""

    def __init__(self) -> None:
        super().__init__("time")

    def __getattr__(self, name: str) -> Any:
        return getattr(time, name)

    @staticmethod
    def sleep(_seconds: float) -> None:
        """No back-off between two tries."""


def install() -> None:
    """Once per process."""
    injection.install()
    botocore.endpoint.time = QuickTime()  # type: ignore[attr-defined]
    transform.convert.DRIVER_THREADS = 1
    lake.publish.PARALLEL_REQUESTS = 1
    router.route.own.PARALLEL_REQUESTS = 1
    router.plan.merge.PARALLEL_REQUESTS = 1
    transform.task.s3_client = functools.cache(transform.clients.s3_client)
    logging.getLogger("hybrid-router").setLevel(logging.CRITICAL)
