"""Glue's worker types, and what of their memory the Python workers of one executor may take."""

from __future__ import annotations

from lake.errors import InvalidSettingsError

MIB = 1 << 20
GIB = 1 << 30
WORKERS = {"G.025X": 2, "G.1X": 4, "G.2X": 8, "G.4X": 16, "G.8X": 32}
"""vCPUs of a worker type, each of which runs one task at a time."""
_MEMORY = {"G.025X": 4 * GIB, "G.1X": 16 * GIB, "G.2X": 32 * GIB, "G.4X": 64 * GIB, "G.8X": 128 * GIB}
_OUTSIDE_HEAP = 5 / 16
"""About 10 of a G.1X's 16 GB are the JVM's heap and 1 its overhead. Glue publishes neither: assumed for every type."""
_EXECUTOR_BYTES = 1_000_000_000
"""Whatever the tasks: Spark's Python daemon, the libraries' code, buffers of the operating system."""
_TASK_BYTES = 300_000_000
"""The budget of one task with a row group of the default size; docs/performance.md has what was measured."""
_ROW_GROUP_BYTES = 64 * MIB


def needed_bytes(worker_type: str, row_group_bytes: int) -> int:
    """Bytes outside of the JVM's heap that an executor of this type needs when all its cores have a task."""
    # Full pages are held compressed: from 64 to 256 MiB, half of what was added was measured with 16 and 46 columns.
    # With so many columns that no page is full, all of it is held as it is, in buffers that may be copied to grow.
    beyond = 2 * max(0, row_group_bytes - _ROW_GROUP_BYTES)
    return WORKERS[worker_type] * (_TASK_BYTES + beyond) + _EXECUTOR_BYTES


def check_worker(key: str, worker_type: str, row_group_bytes: int) -> None:
    """A worker type has the memory that its tasks need.

    Raises
    ------
    InvalidSettingsError
        Naming key and value; executors of such a type would be killed for their memory.
    """
    needed, there = needed_bytes(worker_type, row_group_bytes), int(_MEMORY[worker_type] * _OUTSIDE_HEAP)
    if needed > there:
        raise InvalidSettingsError(
            key,
            worker_type,
            f"its {WORKERS[worker_type]} tasks need {needed / 1e9:.1f} GB beside the JVM's heap, of which there are "
            f"about {there / 1e9:.1f}: take G.1X or larger, or a smaller convert.row_group_bytes where that is set",
        )
