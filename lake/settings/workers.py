"""Worker types, by the names of Glue, and the memory that the tasks of one executor need."""

from __future__ import annotations

from lake.errors import InvalidSettingsError

MIB = 1 << 20
GIB = 1 << 30
WORKERS = {"G.025X": 2, "G.1X": 4, "G.2X": 8, "G.4X": 16, "G.8X": 32}
"""vCPUs of each worker type (AWS Glue, "Worker types"); each runs one task at a time."""
DPUS = {"G.025X": 0.25, "G.1X": 1, "G.2X": 2, "G.4X": 4, "G.8X": 8}
"""DPUs of each worker type (the same page): what Glue bills, and counts for the account's quota."""
MAX_WORKERS = 299
"""Largest number of workers of a job run, the driver's included (AWS Glue, StartJobRun, for G.1X)."""
FLEX_WORKERS = ("G.1X", "G.2X")
"""Glue's execution class FLEX has no others (AWS Glue, "Worker types")."""
EMR_WORKERS = ("G.1X", "G.2X", "G.4X")
"""EMR Serverless has workers of their vCPUs and memory; its largest has 16 vCPUs (Amazon EMR Serverless User Guide,
"Supported worker configurations")."""
MEMORY_GIB = {"G.025X": 4, "G.1X": 16, "G.2X": 32, "G.4X": 64, "G.8X": 128}
"""GiB of each worker type (AWS Glue, "Worker types")."""
_OUTSIDE_HEAP = 5 / 16
"""Assumed share of memory outside the JVM: of a G.1X's 16 GB, the heap takes about 10 and its overhead 1.

Glue does not publish these values; the same share is assumed for every worker type.
"""
_EXECUTOR_BYTES = 1_000_000_000
"""Fixed part per executor: Spark's Python daemon, the libraries' code, buffers of the operating system."""
_TASK_BYTES = 300_000_000
"""Budget per task with the default row group; measurements: docs/performance.md."""
_ROW_GROUP_BYTES = 64 * MIB


def needed_bytes(worker_type: str, row_group_bytes: int) -> int:
    """Bytes outside the JVM's heap that an executor of this type needs when every vCPU runs a task."""
    # Full pages are kept compressed: from 64 to 256 MiB, half of the increase was measured with 16 and 46 columns.
    # With so many columns that no page is full, all data stays uncompressed, in buffers that may be copied to grow.
    increase = 2 * max(0, row_group_bytes - _ROW_GROUP_BYTES)
    return WORKERS[worker_type] * (_TASK_BYTES + increase) + _EXECUTOR_BYTES


def check_worker(key: str, worker_type: str, row_group_bytes: int) -> None:
    """Check that a worker type has the memory that its tasks need.

    Raises
    ------
    InvalidSettingsError
        The executors would run out of memory and be killed.
    """
    needed, available = needed_bytes(worker_type, row_group_bytes), int(MEMORY_GIB[worker_type] * GIB * _OUTSIDE_HEAP)
    if needed > available:
        raise InvalidSettingsError(
            key,
            worker_type,
            f"its {WORKERS[worker_type]} tasks need {needed / 1e9:.1f} GB beside the JVM's heap, of which there are "
            f"about {available / 1e9:.1f}: take G.1X or larger, or a smaller convert.row_group_bytes where that is set",
        )
