"""Settings of the two lanes and of the conversion in both: ``stream``, ``batch`` and ``convert``."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated

from lake.engines import ENGINES, Engine, Units, services_of
from lake.engines.description import GIB, MAX_WORKERS, MIB, WORKERS, max_workers
from lake.errors import InvalidSettingsError
from lake.settings.declaration import one_of, span
from lake.shards import MAX_SHARDS

MAX_LATENCY_GOAL_SECONDS = 7 * 24 * 3600
SECONDS_PER_CORE = 27.0
"""Work for each core in a micro-batch: one and a half usual tasks of the stream lane, so that a core has its next task
before it finishes one (docs/performance.md)."""
MAX_LOOK_SECONDS = 5.0
"""Maximum interval between two looks for urgent pointers, and between two heartbeats. The looks of a day are 17,280
LIST requests: 0.09 dollars."""
MAX_POINTERS_PER_TRIGGER = 500
"""Maximum number of pointers of a micro-batch. It is independent of manifest sizes, because a quiet dataset has many
small ones between two triggers. ``StreamSettings.parallel_seconds`` limits the input that is converted in parallel."""
BATCH_FILES = 50_000
"""Maximum number of files of a micro-batch; one manifest may exceed it. The driver holds a result for each file."""
RUN_FILES = 200_000
"""Maximum number of files of a job run; one manifest may exceed it. Spark ends a job whose results exceed 1 GiB
(``spark.driver.maxResultSize``). The result of a file has at most 2.8 KB: with the longest key, and lines rejected for
every reason (``tests/unit/transform/test_spark_job.py``)."""
RUN_MANIFESTS = 500
"""Maximum number of manifests of a job run: a failed run begins all of them again."""
HELD_ROUNDS = 60
"""Number of checks of manifests that other runs hold, by a Map child and then by Settle: twelve leases long."""


@dataclass(frozen=True, slots=True)
class StreamSettings:
    """The stream lane."""

    manifest_bytes: Annotated[int, span(1, 64 * GIB, "bytes")] = GIB
    """Maximum size, as stored, of the files of one manifest; a larger file gets a manifest of its own."""
    manifest_files: Annotated[int, span(1, 10_000)] = 1000
    """Maximum number of files of one manifest."""
    trigger_seconds: Annotated[int, span(1, 3600, "seconds")] = 5
    """Interval between micro-batches; urgent files do not wait for it."""
    idle_minutes: Annotated[float, span(0.05, 1440, "minutes")] = 15
    """Time without work after which the run ends outside the stream window."""
    latency_goal_seconds: Annotated[int, span(1, MAX_LATENCY_GOAL_SECONDS, "seconds")] = 300
    """Time in which a peak file that is not urgent should be published. Such files are admitted to the stream lane
    while all workers can convert the waiting files in half of this time; other files spill to the batch lane. A file
    that alone takes longer goes to the batch lane, urgent or not."""
    engine: Annotated[str, one_of((Engine.GLUE.value, Engine.EMR_SERVERLESS.value))] = Engine.GLUE.value
    """Where the streaming jobs run: glue, with at least two workers; or emr-serverless, where only a small driver waits
    while the stream is quiet."""
    worker_type: Annotated[str, one_of(tuple(WORKERS))] = "G.1X"
    """Size of the workers, by the names of Glue; emr-serverless has G.1X, G.2X and G.4X. Each vCPU of an executor
    converts one task at a time."""
    max_workers: Annotated[int, span(2, MAX_WORKERS)] = 10
    """Upper limit of auto scaling of each streaming job, the driver's worker included."""
    emr_min_executors: Annotated[int, span(0, MAX_WORKERS - 1)] = 0
    """Executors that a streaming job on EMR Serverless keeps while it has nothing to convert. With 0 the first file
    after a quiet time waits until an executor has started."""
    jobs: Annotated[int, span(1, MAX_SHARDS)] = 1
    """Number of streaming jobs that divide the manifests of the stream lane evenly among themselves, each with its own
    inbox and workers."""

    def conflicts(self) -> Iterator[InvalidSettingsError]:
        types = ENGINES[self.engine].worker_types
        if self.worker_type not in types:
            expected = f"expected one of {', '.join(types)} with {self.engine}"
            yield InvalidSettingsError("stream.worker_type", self.worker_type, expected)
        limit = max_workers(self.worker_type)
        if self.max_workers > limit:
            expected = f"expected a number from 2 to {limit} with {self.worker_type}"
            yield InvalidSettingsError("stream.max_workers", self.max_workers, expected)
        if self.emr_min_executors >= self.max_workers:
            expected = f"expected a number from 0 to {self.max_workers - 1}"
            yield InvalidSettingsError("stream.emr_min_executors", self.emr_min_executors, expected)

    @property
    def parallel_seconds(self) -> float:
        """Work that micro-batches convert in parallel, in seconds of one core: enough for all cores of the largest
        cluster."""
        return self.cores * SECONDS_PER_CORE

    @property
    def cores(self) -> int:
        """Number of vCPUs that convert when auto scaling has reached ``max_workers``."""
        return (self.max_workers - 1) * WORKERS[self.worker_type]

    @property
    def on_emr(self) -> bool:
        return self.engine == Engine.EMR_SERVERLESS

    @property
    def min_executors(self) -> int:
        """Number of executors of a streaming job that has nothing to convert."""
        return ENGINES[self.engine].min_stream_executors(self)

    @property
    def units(self) -> Units:
        """What its engine bills for one streaming job with all of its workers."""
        return self.units_with(self.max_workers - 1)

    def units_with(self, executors: int) -> Units:
        """What its engine bills for one streaming job with this number of executors."""
        engine = ENGINES[self.engine]
        return engine.stream_driver(self.worker_type) + engine.worker(self.worker_type).times(executors)


@dataclass(frozen=True, slots=True)
class BatchSettings:
    """The batch lane."""

    manifest_bytes: Annotated[int, span(1, 1 << 50, "bytes")] = 64 * GIB
    """Maximum size, as stored, of the files of one manifest; a larger file gets a manifest of its own."""
    manifest_files: Annotated[int, span(1, 50_000)] = 10_000
    """Maximum number of files of one manifest."""
    run_bytes: Annotated[int, span(1, 1 << 50, "bytes")] = 4096 * GIB
    """Maximum input of one job run, less than an hour of work on all its workers; one manifest may exceed it. Each run
    spends some minutes without converting, so small runs cost time."""
    max_runs: Annotated[int, span(1, 1000)] = 50
    """Maximum number of parallel job runs, on all engines together; fewer on Glue if the quotas have no room for them
    next to the streaming job."""
    max_attempts: Annotated[int, span(1, 20)] = 3
    """Failed attempts after which a manifest of the stream lane is superseded into the batch lane, or one of the batch
    lane is split or FAILED; also consecutive job runs without progress before a run of the plan is abandoned."""
    lease_seconds: Annotated[int, span(10, 3600, "seconds")] = 600
    """Time after which another run can claim a manifest whose holder does not renew its lease, in both lanes."""
    run_timeout_minutes: Annotated[int, span(1, 10_080, "minutes")] = 480
    """Time after which the engine ends a job run."""
    worker_type: Annotated[str, one_of(tuple(WORKERS))] = "G.1X"
    """Size of the workers, by the names of Glue: G.1X or G.2X with glue-flex, G.4X with emr-serverless as well, G.8X
    with glue only."""
    workers: Annotated[int, span(2, MAX_WORKERS)] = 10
    """Upper limit of auto scaling of a job run, the driver's worker included."""
    engines: Annotated[tuple[str, ...], one_of(tuple(engine.value for engine in Engine))] = (Engine.GLUE_FLEX.value,)
    """Engines that a plan may use: glue-flex (cheaper, but a run may wait for capacity, and workers can be reclaimed),
    glue, emr-serverless. A plan takes the cheapest engine that ends in time, unless the execution names one."""

    def conflicts(self) -> Iterator[InvalidSettingsError]:
        if not self.engines or len(set(self.engines)) < len(self.engines):
            yield InvalidSettingsError("batch.engines", list(self.engines), "expected at least one engine, each once")
        for engine in self.engines:
            types = ENGINES[engine].worker_types
            if self.worker_type not in types:
                expected = f"expected one of {', '.join(types)} with {engine}"
                yield InvalidSettingsError("batch.worker_type", self.worker_type, expected)
                return
        limit = max_workers(self.worker_type)
        if self.workers > limit:
            expected = f"expected a number from 2 to {limit} with {self.worker_type}"
            yield InvalidSettingsError("batch.workers", self.workers, expected)

    @property
    def held_wait_seconds(self) -> int:
        """Wait of a Map child, and of Settle, before the next check: a fifth of a lease."""
        return max(1, self.lease_seconds // 5)

    @property
    def uses_emr(self) -> bool:
        return Engine.EMR_SERVERLESS in self.engines

    @property
    def uses_flex(self) -> bool:
        return Engine.GLUE_FLEX in self.engines

    @property
    def uses_glue(self) -> bool:
        return "glue" in services_of(self.engines)


MAX_COLUMN_LIMIT = 1000
"""Highest value of ``convert.column_limit``: the names of a dataset's columns are one item of the ledger."""


@dataclass(frozen=True, slots=True)
class ConvertSettings:
    """Conversion to Parquet, the same in both lanes."""

    split_bytes: Annotated[int, span(1, 16 * GIB, "bytes")] = 256 * MIB
    """Maximum size of the parts into which an uncompressed file is split for the tasks."""
    # A file can reach 1.5 times its target, and is uploaded as one part: S3 accepts up to 5 GiB.
    target_file_bytes: Annotated[int, span(1, 3 * GIB, "bytes")] = 128 * MIB
    """Approximate size of a Parquet file."""
    row_group_bytes: Annotated[int, span(1, 512 * MIB, "bytes")] = 128 * MIB
    """Uncompressed size of the columns of one row group; a row group that takes 48 MiB of memory ends earlier."""
    compression: Annotated[str, one_of(("zstd", "snappy"))] = "zstd"
    """Codec of the Parquet pages."""
    zstd_level: Annotated[int, span(1, 19)] = 1
    """Level of zstd: 9 makes files 4 to 13 % smaller at about a quarter of the speed."""
    column_limit: Annotated[int, span(1, MAX_COLUMN_LIMIT)] = MAX_COLUMN_LIMIT
    """Maximum number of columns of a dataset; existing columns stay. Further keys go to the column _rescued."""
    max_line_bytes: Annotated[int, span(1024, 64 * MIB, "bytes")] = 16 * MIB
    """A longer line is quarantined."""
    concatenated: bool = False
    """Whether rows need no newline between them: a file is a sequence of JSON objects, on one line or printed over
    many. One task reads each file."""
    min_bytes_per_second: Annotated[int, span(0, GIB, "bytes per second")] = 1_000_000
    """Slowest speed of a file after its first minute, in stored bytes per second of processor time; a tenth of it for a
    compressed file. A slower file is excluded as unreadable. Waiting for S3 does not count. 0: no file is too
    slow."""
    max_core_minutes: Annotated[float, span(1, 5_040, "minutes")] = 60
    """Processor time after which a file, or the part that a task reads at once, is excluded too; at most half of
    batch.run_timeout_minutes."""
    provenance: bool = False
    """Whether rows have the columns _source, _offset and _arrived_at: file, byte offset of the line, time of
    arrival."""

    def conflicts(self) -> Iterator[InvalidSettingsError]:
        slowest = self.split_bytes / (60 * self.max_core_minutes)
        if self.min_bytes_per_second and self.min_bytes_per_second < slowest:
            expected = (
                f"expected at least {math.ceil(slowest):,}, or 0: a slower part of convert.split_bytes takes longer "
                "than convert.max_core_minutes"
            )
            yield InvalidSettingsError("convert.min_bytes_per_second", self.min_bytes_per_second, expected)
