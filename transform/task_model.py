"""The values that the driver and its tasks exchange: plain and picklable, without open files or connections.

Also the context of a job run: clients and settings of its deployment, its own id, clock and log.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING

from lake.aws_types import S3Client
from lake.ledger import Ledger
from lake.manifest import INFLATED_RATIO, ObjectVersion, Partition, has_compressed_name

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from lake.commit import PendingObject
    from lake.resource_names import ResourceNames
    from lake.settings import ConvertSettings, Settings, StreamSettings
    from transform.give_up import EnvironmentFault
    from transform.quarantine_writer import QuarantineContent


NUMBERS_PER_TASK = 1_000_000
"""Object numbers reserved for each task, so that keys do not depend on which attempt of a task succeeds.

A task cannot use more: a file may expand to at most 256 GiB, in Parquet files of at least 256 KiB of input each.
"""
GRACE_SECONDS = 60.0
"""Processor time in which any speed is allowed: a small file costs little, and its first rows can be slow."""


def stream_seconds(stream: StreamSettings) -> float:
    """Processor time after which a file leaves the stream lane: the latency goal, and at least ``GRACE_SECONDS``."""
    return max(float(stream.latency_goal_seconds), GRACE_SECONDS)


@dataclass(frozen=True, slots=True)
class Split:
    """The lines of a file whose first byte lies in [start, end)."""

    file: ObjectVersion
    start: int
    end: int

    @property
    def size(self) -> int:
        return self.end - self.start

    @property
    def whole(self) -> bool:
        """Whether it covers its file; only such a split may be compressed or an array."""
        return self.start == 0 and self.end == self.file.size


@dataclass(frozen=True, slots=True)
class Task:
    """Consecutive splits of one manifest that one core converts into the task's own objects."""

    manifest: str
    generation: int
    partition: Partition
    number: int
    """From 0; unique within the attempt."""
    splits: tuple[Split, ...]
    known_columns: tuple[str, ...]
    """Frozen per attempt: the same in all of its tasks."""
    lake_bucket: str
    quarantine_bucket: str
    region: str
    """Region of all buckets, which a Python worker cannot find elsewhere."""
    settings: ConvertSettings
    input_keys: tuple[str, ...] | None = None
    input_bucket: str | None = None
    """None without a deployment, if the files were just listed."""
    unnumbered: frozenset[str] | None = None
    """Columns without a field id (``DatasetRow.unnumbered``); None if the dataset has no Iceberg table, so that its
    files have no field ids."""
    stream_seconds: float | None = None
    """Processor time after which a file leaves the stream lane; None in the batch lane."""
    excluded: tuple[tuple[ObjectVersion, str], ...] = ()
    """Files that the attempt skips, with the reason. Only its last task, which has no splits, has them: its object is
    the last one of the quarantine."""

    @property
    def ndjson_bytes(self) -> int:
        """Estimated from sizes and names of its files, to compare the durations of tasks."""
        return sum(split.size * (INFLATED_RATIO if has_compressed_name(split.file.key) else 1) for split in self.splits)

    def object_number(self, position: int) -> int:
        """Number in the key of the object at ``position`` (from 0): the same in every try of the task."""
        return self.number * NUMBERS_PER_TASK + position


@dataclass(frozen=True, slots=True)
class SplitResult:
    split: Split
    lines: int
    rows: int
    blank_lines: int
    rejects: dict[str, int]
    bytes: int
    """Bytes of its lines, decompressed and including newlines."""
    compressed: bool
    first_reject: str | None
    """Reason and byte offset of the first rejected line, as text for people."""


@dataclass(frozen=True, slots=True)
class FileFailure:
    """A file that cannot be read to its end; its manifest is converted again without it."""

    file: ObjectVersion
    reason: str
    denied: EnvironmentFault | None = None
    """Set if the job may not read the file: it waits, and is not bad input."""
    slow: bool = False
    """Whether it takes longer than the stream lane allows: the batch lane converts it."""
    advice: str | None = None
    """The reason, without the command of a stage, if the file can be read after its cause is removed; else None."""


@dataclass(frozen=True, slots=True)
class TaskResult:
    """One successful task attempt. With ``failures`` the attempt is given up, and its uploads are aborted."""

    manifest: str
    number: int
    objects: tuple[PendingObject, ...]
    quarantine: tuple[PendingObject, ...]
    splits: tuple[SplitResult, ...]
    new_columns: tuple[str, ...]
    failures: tuple[FileFailure, ...]
    milliseconds: int
    """Wall time of the task."""
    quarantine_contents: tuple[QuarantineContent, ...] = ()
    """The content of each object of ``quarantine``, read back from its file before the upload."""
    fault: EnvironmentFault | None = None
    """Why the environment stopped the task. It is a value, because Spark counts errors against the job."""

    @property
    def uploaded(self) -> tuple[PendingObject, ...]:
        return (*self.objects, *self.quarantine)


@dataclass(frozen=True, slots=True)
class ConversionContext:
    """Everything that the functions of one job run share."""

    spark: SparkSession
    s3: S3Client
    """Thread-safe."""
    ledger: Ledger
    resources: ResourceNames
    settings: Settings
    region: str
    run: str
    """Id of this job run, which is in its leases."""
    clock: Callable[[], datetime]
    """Returns aware datetimes."""
    run_is_terminal: Callable[[str], bool]
    """Returns whether the job run with this id has ended, so that its manifests can be taken over at once."""
    log: Callable[[str], None]
    """Writes one line to the run's log; called from several threads."""
    wait: Callable[[float], object] = time.sleep
    """Pauses for a number of seconds before a new try."""
    pool: str | None = None
    """Name of the Spark scheduler pool of its jobs; None for the default pool. Busy pools share the cores."""
    unanswered: dict[str, str] = field(default_factory=dict)
    """Nonces, by manifest, of claims that got no answer or could not be released: the next call takes them up."""
