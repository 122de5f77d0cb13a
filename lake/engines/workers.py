"""Worker types, by the names of Glue, and the memory that the tasks of one executor need."""

from __future__ import annotations

MIB = 1 << 20
GIB = 1 << 30
WORKERS = {"G.025X": 2, "G.1X": 4, "G.2X": 8, "G.4X": 16, "G.8X": 32}
"""vCPUs of each worker type (AWS Glue, "Worker types"); each runs one task at a time."""
DPUS = {"G.025X": 0.25, "G.1X": 1, "G.2X": 2, "G.4X": 4, "G.8X": 8}
"""DPUs of each worker type (the same page): what Glue bills, and counts for the account's quota."""
MAX_DPUS = 299
"""DPUs of a job run, the driver's included: AWS's pages have had 299 workers of G.1X and 149 of G.2X, and no number for
other types."""
MAX_WORKERS = 299
"""Workers of a job run of the smallest types."""
MEMORY_GIB = {"G.025X": 4, "G.1X": 16, "G.2X": 32, "G.4X": 64, "G.8X": 128}
"""GiB of each worker type (AWS Glue, "Worker types")."""
X86, ARM = "x86_64", "arm64"
"""Processors of EMR Serverless."""
OUTSIDE_HEAP = 5 / 16
"""Assumed share of memory outside the JVM: of a G.1X's 16 GB, the heap takes about 10 and its overhead 1.

Glue does not publish these values; the same share is assumed for every worker type.
"""
_EXECUTOR_BYTES = 1_000_000_000
"""Fixed part per executor: Spark's Python daemon, the libraries' code, buffers of the operating system."""
_TASK_BYTES = 300_000_000
"""Budget per task; measurements: docs/performance.md. ``MAX_HELD_BYTES`` bounds a row group, whatever its size."""


def max_workers(worker_type: str) -> int:
    """Largest number of workers of a job run of this type; a quarter of a DPU counts as one."""
    return int(MAX_DPUS // max(1, DPUS[worker_type]))


def needed_bytes(vcpus: int) -> int:
    """Bytes outside the JVM's heap that an executor needs when each of its vCPUs runs a task."""
    return vcpus * _TASK_BYTES + _EXECUTOR_BYTES
