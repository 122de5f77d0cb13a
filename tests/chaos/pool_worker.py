"""One process of the pool that plays many histories."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from router.telemetry import logger, metrics
from tests.chaos import runtime_patches
from tests.chaos.history import run_history
from tests.chaos.processes import clients

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tests.chaos.history import Report


def connect_to(environment: Mapping[str, str]) -> None:
    """Send every AWS request of this process to the local cloud of ``environment``; silence logs and metrics."""
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        del os.environ[name]
    os.environ.update(environment)
    logger.setLevel("CRITICAL")
    metrics.add_metric = lambda **_: None  # type: ignore[method-assign]


def play(seed: int) -> Report:
    """One history in this process."""
    with runtime_patches.installed():
        return run_history(clients(), seed)
