"""Settings of the two lanes: ``stream`` and ``batch``."""

from __future__ import annotations

from dataclasses import dataclass

from lake.engines import Engine
from lake.errors import InvalidSettingsError
from lake.settings.checks import check_choice, check_range
from lake.settings.workers import EMR_WORKERS, FLEX_WORKERS, GIB, WORKERS, check_emr_size, max_workers
from lake.shards import MAX_SHARDS

MAX_FILES_OF_A_JOB = 350_000
"""Spark ends a job whose results exceed 1 GiB (``spark.driver.maxResultSize``). A file has 2.8 KB of them at most: with
the longest key, and lines rejected for every reason (``tests/unit/transform/test_task_model.py``)."""

MAX_LATENCY_GOAL_SECONDS = 7 * 24 * 3600
"""A week."""
BYTES_PER_CORE = GIB
"""One and a half times the input of a usual task of the stream lane, so that a core has the next task before it has
finished one (docs/performance.md)."""
STREAM_ENGINES = (Engine.GLUE.value, Engine.EMR_SERVERLESS.value)
MIN_EMR_DRIVER_GB = 4
"""Assumed: Spark keeps up to 1 GiB of results (``spark.driver.maxResultSize``), of a heap of 2."""


@dataclass(frozen=True, slots=True)
class StreamSettings:
    """The stream lane."""

    manifest_bytes: int = GIB
    """Maximum size, as stored, of the files of one manifest; a larger file gets a manifest of its own."""
    manifest_files: int = 1000
    """Maximum number of files of one manifest."""
    max_file_bytes: int = 0
    """Size in bytes above which a file goes to the batch lane, urgent or not; 0: what ``max_workers`` convert within
    ``latency_goal_seconds`` at the speed of ``price``, one core if its name is that of a compressed file."""
    trigger_seconds: int = 5
    """Interval between micro-batches."""
    batch_bytes: int = 0
    """Maximum input in bytes that a micro-batch converts side by side, one manifest may exceed it; 0: what keeps all
    cores of ``stream.max_workers`` busy."""
    batch_files: int = 50_000
    """Maximum number of its files; one manifest may exceed it."""
    max_attempts: int = 3
    """Failed attempts after which a manifest is superseded into the batch lane."""
    idle_minutes: float = 15
    """Outside the stream window, the run ends after this time without work."""
    latency_goal_seconds: int = 300
    """Time in which a peak file that is not urgent is to be published. Such files spill to the batch lane while the
    backlog of their streaming job is more than all its workers convert in this time, and until it is a quarter of
    that."""
    engine: str = Engine.GLUE.value
    """Where the streaming jobs run: glue, with two workers at least, or emr-serverless, with the workers of the
    ``emr_`` keys of this table: while the stream is quiet, a small driver alone."""
    worker_type: str = "G.1X"
    """Glue worker type of the streaming job: G.1X, G.2X, G.4X or G.8X. Without effect with emr-serverless."""
    max_workers: int = 10
    """Upper limit of auto scaling of each streaming job, the driver's worker included."""
    emr_driver_vcpus: int = 2
    """vCPUs of the driver on EMR Serverless: 1, 2, 4, 8 or 16."""
    emr_driver_gb: int = 8
    """Memory of the driver on EMR Serverless in GB, at least 4."""
    emr_executor_vcpus: int = 4
    """vCPUs of each executor on EMR Serverless: 1, 2, 4, 8 or 16. Each converts one task at a time."""
    emr_executor_gb: int = 16
    """Memory of each executor on EMR Serverless in GB."""
    emr_min_executors: int = 0
    """Executors that a streaming job on EMR Serverless keeps while it has nothing to convert. With 0 the first file
    after a quiet time waits until an executor has started."""
    jobs: int = 1
    """Number of streaming jobs that divide the manifests of the stream lane evenly among themselves, each with its own
    inbox and workers."""

    def __post_init__(self) -> None:
        check_range("stream.manifest_bytes", self.manifest_bytes, 1, 64 * GIB)
        check_range("stream.manifest_files", self.manifest_files, 1, 10_000)
        check_range("stream.max_file_bytes", self.max_file_bytes, 0, 1 << 50)
        check_range("stream.trigger_seconds", self.trigger_seconds, 1, 3600)
        check_range("stream.batch_bytes", self.batch_bytes, 0, 1 << 50)
        if self.batch_bytes and self.batch_bytes < self.manifest_bytes:
            raise InvalidSettingsError("stream.batch_bytes", self.batch_bytes, "0, or at least stream.manifest_bytes")
        check_range("stream.batch_files", self.batch_files, 1, MAX_FILES_OF_A_JOB)
        check_range("stream.max_attempts", self.max_attempts, 1, 20)
        check_range("stream.idle_minutes", self.idle_minutes, 0.05, 1440)
        check_range("stream.latency_goal_seconds", self.latency_goal_seconds, 1, MAX_LATENCY_GOAL_SECONDS)
        check_choice("stream.worker_type", self.worker_type, WORKERS)
        check_range("stream.max_workers", self.max_workers, 2, max_workers(self.worker_type))
        self._check_engine()
        check_range("stream.jobs", self.jobs, 1, MAX_SHARDS)

    @property
    def side_by_side_bytes(self) -> int:
        """Input in bytes that a micro-batch converts side by side."""
        return self.batch_bytes or max(self.manifest_bytes, self.cores * BYTES_PER_CORE)

    @property
    def cores(self) -> int:
        """vCPUs that convert when auto scaling has reached ``max_workers``."""
        return (self.max_workers - 1) * (self.emr_executor_vcpus if self.on_emr else WORKERS[self.worker_type])

    @property
    def on_emr(self) -> bool:
        """Whether the streaming jobs run on EMR Serverless."""
        return self.engine == Engine.EMR_SERVERLESS

    @property
    def emr_vcpus(self) -> int:
        """vCPUs of one streaming job on EMR Serverless with all of its workers."""
        return self.emr_driver_vcpus + (self.max_workers - 1) * self.emr_executor_vcpus

    @property
    def emr_gb(self) -> int:
        """The same of their memory, in GB."""
        return self.emr_driver_gb + (self.max_workers - 1) * self.emr_executor_gb

    def _check_engine(self) -> None:
        check_choice("stream.engine", self.engine, STREAM_ENGINES)
        check_emr_size("stream.emr_driver", self.emr_driver_vcpus, self.emr_driver_gb, MIN_EMR_DRIVER_GB)
        check_emr_size("stream.emr_executor", self.emr_executor_vcpus, self.emr_executor_gb)
        check_range("stream.emr_min_executors", self.emr_min_executors, 0, self.max_workers - 1)


@dataclass(frozen=True, slots=True)
class BatchSettings:
    """The batch lane."""

    manifest_bytes: int = 64 * GIB
    """Maximum size, as stored, of the files of one manifest, after merging too; a larger file gets one of its own."""
    manifest_files: int = 10_000
    """Maximum number of files of one manifest."""
    run_bytes: int = 4096 * GIB
    """Maximum input in bytes of one job run, less than an hour of work on all its workers; one manifest may exceed it.
    A run has some minutes in which it does not convert, so small runs cost time."""
    run_manifests: int = 500
    """Maximum number of manifests of one job run."""
    run_files: int = 200_000
    """Maximum number of files of one job run, whose driver holds a result for each; one manifest may exceed it."""
    max_runs: int = 50
    """Maximum number of job runs in parallel, on all engines together; fewer on Glue where ``quota`` has no room for
    them beside the streaming job."""
    max_attempts: int = 3
    """Attempts of one manifest before it is FAILED; also consecutive runs without progress before a Map child ends."""
    lease_seconds: int = 600
    """Time after which another run can claim a manifest whose holder does not renew its lease, in both lanes."""
    held_wait_seconds: int = 120
    """Wait of a Map child before it tries again to claim a manifest that another run holds ..."""
    held_rounds: int = 30
    """... and maximum number of such tries."""
    run_timeout_minutes: int = 480
    """Time after which the engine ends a job run."""
    worker_type: str = "G.1X"
    """Size of the workers, by the names of Glue: G.1X or G.2X with glue-flex, G.4X with emr-serverless as well, G.8X
    with glue only."""
    workers: int = 10
    """Upper limit of auto scaling, the driver's worker included."""
    engines: tuple[str, ...] = (Engine.GLUE_FLEX.value,)
    """Engines that a plan may use: glue-flex (cheaper, but a run may wait for capacity, and workers can be reclaimed),
    glue, emr-serverless. A plan takes the cheapest one that ends in time, unless an execution names another one."""

    def __post_init__(self) -> None:
        check_range("batch.manifest_bytes", self.manifest_bytes, 1, 1 << 50)
        check_range("batch.manifest_files", self.manifest_files, 1, 50_000)
        check_range("batch.run_bytes", self.run_bytes, 1, 1 << 50)
        check_range("batch.run_manifests", self.run_manifests, 1, 10_000)
        check_range("batch.run_files", self.run_files, 1, MAX_FILES_OF_A_JOB)
        check_range("batch.max_runs", self.max_runs, 1, 1000)
        check_range("batch.max_attempts", self.max_attempts, 1, 20)
        check_range("batch.lease_seconds", self.lease_seconds, 10, 3600)
        check_range("batch.held_wait_seconds", self.held_wait_seconds, 1, 3600)
        check_range("batch.held_rounds", self.held_rounds, 1, 1000)
        check_range("batch.run_timeout_minutes", self.run_timeout_minutes, 1, 10_080)
        check_choice("batch.worker_type", self.worker_type, WORKERS)
        check_range("batch.workers", self.workers, 2, max_workers(self.worker_type))
        self._check_engines()

    @property
    def uses_emr(self) -> bool:
        """Whether a run may be on EMR Serverless."""
        return Engine.EMR_SERVERLESS in self.engines

    @property
    def uses_glue(self) -> bool:
        """Whether a run may be on Glue."""
        return any(Engine(engine).on_glue for engine in self.engines)

    def _check_engines(self) -> None:
        for engine in self.engines:
            check_choice("batch.engines", engine, [choice.value for choice in Engine])
        if not self.engines or len(set(self.engines)) < len(self.engines):
            raise InvalidSettingsError("batch.engines", list(self.engines), "expected one engine or more, each once")
        if Engine.GLUE_FLEX in self.engines:
            check_choice("batch.worker_type", self.worker_type, FLEX_WORKERS)
        if self.uses_emr:
            check_choice("batch.worker_type", self.worker_type, EMR_WORKERS)
