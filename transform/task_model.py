"""The values that the driver and its tasks exchange: plain and picklable, no open file and no connection.

Also what a job run converts with: services, its own id, clock and log.
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

More than a task can use: 256 GiB, the most that a file may expand to, in Parquet files of 256 KiB of input each.
"""
GRACE_SECONDS = 60.0
"""Processor time in which any speed is allowed: a small file costs little, and the first rows of a file can be slow."""


def stream_seconds(stream: StreamSettings) -> float:
    """Processor time after which a file leaves the stream lane: the latency goal, and at least the grace."""
    return max(float(stream.latency_goal_seconds), GRACE_SECONDS)


@dataclass(frozen=True, slots=True)
class Split:
    """The lines of a file whose first byte lies in [start, end), in bytes."""

    file: ObjectVersion
    start: int
    end: int

    @property
    def size(self) -> int:
        return self.end - self.start

    @property
    def whole(self) -> bool:
        """Covers its file; only such a split may be compressed or an array."""
        return self.start == 0 and self.end == self.file.size


@dataclass(frozen=True, slots=True)
class Task:
    """Consecutive splits of one manifest, converted by one core into its own objects."""

    manifest: str
    generation: int
    partition: Partition
    number: int
    """From 0, unique within the attempt."""
    splits: tuple[Split, ...]
    known_columns: tuple[str, ...]
    """Frozen per attempt: the same in every task of it."""
    lake_bucket: str
    quarantine_bucket: str
    region: str
    """Region of all buckets: a Python worker finds it nowhere else."""
    settings: ConvertSettings
    input_keys: tuple[str, ...] | None = None
    input_bucket: str | None = None
    """None: no deployment, whose files were listed just now."""
    unnumbered: frozenset[str] | None = None
    """Columns without a field id (``DatasetRow.unnumbered``); None: the dataset has no Iceberg table, nor do its files
    have field ids."""
    stream_seconds: float | None = None
    """Processor time after which a file leaves the stream lane; None in the batch lane."""
    excluded: tuple[tuple[ObjectVersion, str], ...] = ()
    """Files that the attempt leaves out, with the reason. Only its last task has them, which has no splits: its object
    is the last one of the quarantine."""

    @property
    def ndjson_bytes(self) -> int:
        """Estimated from sizes and names of its files: how long it takes compared with other tasks."""
        return sum(split.size * (INFLATED_RATIO if has_compressed_name(split.file.key) else 1) for split in self.splits)

    def object_number(self, position: int) -> int:
        """Number in the key of its object at ``position`` (from 0), the same in every try of the task."""
        return self.number * NUMBERS_PER_TASK + position


@dataclass(frozen=True, slots=True)
class SplitResult:
    split: Split
    lines: int
    rows: int
    blank_lines: int
    rejects: dict[str, int]
    bytes: int
    """Bytes of its lines, decompressed, newlines included."""
    compressed: bool
    first_reject: str | None
    """Reason and byte offset of the first rejected line, as text for people."""


@dataclass(frozen=True, slots=True)
class FileFailure:
    """A file that cannot be read to its end; its manifest is converted again without it."""

    file: ObjectVersion
    reason: str
    denied: EnvironmentFault | None = None
    """The job may not read the file: it waits, and is not bad input."""
    slow: bool = False
    """It takes longer than the stream lane has for it: the batch lane converts it."""
    advice: str | None = None
    """For a file that can be read once its cause is removed: the reason without the command of a stage."""


@dataclass(frozen=True, slots=True)
class TaskResult:
    """One successful task attempt. With ``failures`` it has no objects: the manifest's attempt will be given up."""

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
    """What each object of ``quarantine`` holds, read back from its file before the upload."""

    @property
    def uploaded(self) -> tuple[PendingObject, ...]:
        return (*self.objects, *self.quarantine)


@dataclass(frozen=True, slots=True)
class TaskFault:
    """A task that stopped because of the environment. It is data, because Spark counts an error against the job."""

    manifest: str
    fault: EnvironmentFault


@dataclass(frozen=True, slots=True)
class JobServices:
    """Clients and configuration of one deployment, as a job's driver uses them."""

    s3: S3Client
    """Thread-safe."""
    ledger: Ledger
    resources: ResourceNames
    settings: Settings
    region: str


@dataclass(frozen=True, slots=True)
class ConversionContext:
    """Everything that the functions of one job run share."""

    spark: SparkSession
    services: JobServices
    run: str
    """Id of this job run; its leases carry it."""
    clock: Callable[[], datetime]
    """Returns aware datetimes."""
    run_is_terminal: Callable[[str], bool]
    """Whether the job run with this id has ended: what it held is taken over at once."""
    log: Callable[[str], None]
    """Takes one line of the run's log; called from several threads."""
    wait: Callable[[float], object] = time.sleep
    """Pauses for a number of seconds before something that did not succeed is tried again."""
    pool: str | None = None
    """Name of Spark's scheduler pool of its jobs; None: the default one. Pools that have work share the cores."""
    unanswered: dict[str, str] = field(default_factory=dict)
    """By manifest: the nonce of a claim that got no answer; if it was applied, the next call takes it up."""
