"""Settings of the two lanes: ``stream`` and ``batch``."""

from __future__ import annotations

from dataclasses import dataclass

from lake.settings.checks import check_choice, check_range
from lake.settings.workers import GIB, WORKERS


@dataclass(frozen=True, slots=True)
class StreamSettings:
    """The stream lane."""

    manifest_bytes: int = GIB
    manifest_files: int = 1000
    max_file_bytes: int = 0
    """A larger file goes to the batch lane even at peak; 0: no limit."""
    trigger_seconds: int = 30
    batch_bytes: int = 8 * GIB
    """Input of one Spark job of a micro-batch, or one manifest."""
    max_attempts: int = 3
    """After so many failed attempts a manifest is superseded by the batch lane."""
    idle_minutes: float = 15
    """Outside the stream window the job ends after so long without work."""
    high_mark_bytes: int = 200 * GIB
    """Backlog above which peak files that are not urgent spill to the batch lane ..."""
    low_mark_bytes: int = 50 * GIB
    """... until it is below this."""
    worker_type: str = "G.1X"
    max_workers: int = 10

    def __post_init__(self) -> None:
        check_range("stream.manifest_bytes", self.manifest_bytes, 1, 64 * GIB)
        check_range("stream.manifest_files", self.manifest_files, 1, 10_000)
        check_range("stream.max_file_bytes", self.max_file_bytes, 0, 1 << 50)
        check_range("stream.trigger_seconds", self.trigger_seconds, 1, 3600)
        check_range("stream.batch_bytes", self.batch_bytes, self.manifest_bytes, 1 << 50)
        check_range("stream.max_attempts", self.max_attempts, 1, 20)
        check_range("stream.idle_minutes", self.idle_minutes, 0.05, 1440)
        check_range("stream.low_mark_bytes", self.low_mark_bytes, 0, self.high_mark_bytes)
        check_choice("stream.worker_type", self.worker_type, WORKERS)
        check_range("stream.max_workers", self.max_workers, 2, 299)


@dataclass(frozen=True, slots=True)
class BatchSettings:
    """The batch lane."""

    manifest_bytes: int = 64 * GIB
    manifest_files: int = 10_000
    run_bytes: int = 512 * GIB
    """Input of one Glue run: enough for some minutes of work on all its workers."""
    run_manifests: int = 500
    max_runs: int = 50
    """Glue runs at once."""
    max_attempts: int = 3
    """Attempts of one manifest before it is FAILED."""
    lease_seconds: int = 600
    held_wait_seconds: int = 120
    """How long a Map child waits before it claims a HELD manifest again."""
    held_rounds: int = 30
    """How often it does so."""
    run_timeout_minutes: int = 480
    worker_type: str = "G.1X"
    workers: int = 10
    flex: bool = True
    """Flex: cheaper, may wait for capacity, can be reclaimed."""

    def __post_init__(self) -> None:
        check_range("batch.manifest_bytes", self.manifest_bytes, 1, 1 << 50)
        check_range("batch.manifest_files", self.manifest_files, 1, 50_000)
        check_range("batch.run_bytes", self.run_bytes, 1, 1 << 50)
        check_range("batch.run_manifests", self.run_manifests, 1, 10_000)
        check_range("batch.max_runs", self.max_runs, 1, 1000)
        check_range("batch.max_attempts", self.max_attempts, 1, 20)
        check_range("batch.lease_seconds", self.lease_seconds, 10, 3600)
        check_range("batch.held_wait_seconds", self.held_wait_seconds, 1, 3600)
        check_range("batch.held_rounds", self.held_rounds, 1, 1000)
        check_range("batch.run_timeout_minutes", self.run_timeout_minutes, 1, 10_080)
        check_choice("batch.worker_type", self.worker_type, WORKERS)
        check_range("batch.workers", self.workers, 2, 299)
        if self.flex:
            check_choice("batch.worker_type", self.worker_type, ("G.1X", "G.2X"))
