"""Waiting for a condition instead of a fixed time."""

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

PATIENCE_SECONDS = 600.0
"""Far more than any wait takes on an idle machine: a busy one must not fail a test."""


def wait_for(what: str, condition: Callable[[], T | None], seconds: float = PATIENCE_SECONDS) -> T:
    """Poll until ``condition`` returns a true value, and return it; fail the test after the timeout."""
    deadline = time.monotonic() + seconds
    while True:
        value = condition()
        if value:
            return value
        assert time.monotonic() < deadline, f"waited {seconds:g} s for {what}"
        time.sleep(0.1)
