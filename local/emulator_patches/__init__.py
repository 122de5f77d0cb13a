"""Every place where the emulator (ministack) is changed, because it would otherwise be kinder than AWS or do nothing.

All patch points are private names of one exact version; tests/e2e/local/test_emulator_contract.py fails when a new
version changes what is relied on here. The functions keep the emulator's own signatures.
"""

from __future__ import annotations

from importlib import metadata
from typing import TYPE_CHECKING

from local.errors import LocalCloudError

if TYPE_CHECKING:
    from pathlib import Path

    from local.glue_runs import GlueRuns

PINNED_VERSION = "1.5.33"


def install(runs: GlueRuns, *, lambda_logs: Path, runtime_dir: Path) -> None:
    """Patch the emulator, before it serves. Importing it reads the environment, so nothing here does that earlier.

    Raises
    ------
    LocalCloudError
        Another version of the emulator is installed, or a patch point has changed.
    """
    version = metadata.version("ministack")
    if version != PINNED_VERSION:
        raise LocalCloudError(f"ministack {version} is installed, {PINNED_VERSION} is needed: run uv sync.")
    from local.emulator_patches import glue_jobs, lambda_functions, objects, schedules, state_machines  # noqa: PLC0415

    glue_jobs.patch(runs)
    state_machines.patch(runs)
    lambda_functions.patch(lambda_logs, runtime_dir)
    schedules.patch()
    objects.patch()
