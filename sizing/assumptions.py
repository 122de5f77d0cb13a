"""What a simulation rests on: the speed of a core, the simulator's own values, and the list of all values."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import NamedTuple

from lake.engines import emr_serverless, glue
from lake.ledger import DatasetSpeed
from lake.settings import Settings
from lake.settings.operation import PriceSettings
from lake.speed import FILES_PER_SECOND, MEGABYTE
from router.estimate import night
from router.estimate.night import DRIVERS, MARGIN
from router.estimate.other_costs import OUTPUT_RATIO
from router.estimate.stream_cluster import stream_cluster

CPU_PLAIN = 178.0
"""Megabytes of nested NDJSON a second and core, measured on 2026-11-22; docs/performance.md has more since."""
CPU_GZIP = 126.0
"""Inflated megabytes of gzip files, of the same day."""


def given_gzip_speed(settings: Settings) -> float | None:
    """``price.compressed_mb_per_second_per_core``, unless it is the default: that holds for one ratio only."""
    given = settings.price.compressed_mb_per_second_per_core
    return None if given == PriceSettings().compressed_mb_per_second_per_core else given


@dataclass(frozen=True, slots=True)
class Work:
    """What the files of a manifest take."""

    core_seconds: float
    tasks: int
    """Cores that can work on it at the same time."""
    longest_seconds: float
    """Longest task; a compressed file is one, however large."""
    compressed_seconds: float = 0.0
    """The part of ``core_seconds`` for compressed files."""
    inflated_bytes: float = 0.0


class Measured(NamedTuple):
    """What the ledger of a stage has measured."""

    speeds: Mapping[str, DatasetSpeed]
    """By dataset."""
    waits: Mapping[str, float]
    """By engine: seconds until a job run is billed."""


NOTHING_MEASURED = Measured({}, {})


@dataclass(frozen=True, slots=True)
class Speed:
    """Speed of one core, and the size of a task."""

    plain: float
    """Bytes as stored a second."""
    gzip: float
    """The same of compressed files."""
    task_bytes: float
    """Bytes of NDJSON that make one output file."""
    split_bytes: int
    ratio: float
    """Bytes of NDJSON for each byte of a compressed file."""
    measured: Mapping[str, DatasetSpeed] = field(default_factory=dict)
    """By dataset: what takes the place of ``plain`` and ``gzip``."""

    @classmethod
    def of(cls, settings: Settings, ratio: float, measured: Mapping[str, DatasetSpeed] | None = None) -> Speed:
        """The slower one of network and processor; the network's share of a core is that of the settings' forecasts.

        A speed of compressed files that the settings give takes the place of the measured one.
        """
        network = settings.price.mb_per_second_per_core
        return cls(
            min(network, CPU_PLAIN) * MEGABYTE,
            min(network, given_gzip_speed(settings) or CPU_GZIP / ratio) * MEGABYTE,
            settings.convert.target_file_bytes / OUTPUT_RATIO,
            settings.convert.split_bytes,
            ratio,
            measured or {},
        )

    def of_dataset(self, name: str) -> Speed:
        """With what was measured of this dataset, plain and compressed files apart."""
        found = self.measured.get(name)
        if found is None:
            return self
        return replace(self, plain=found.plain or self.plain, gzip=found.compressed or self.gzip, measured={})

    def rate(self, dataset: str, compressed: bool) -> float:
        """Bytes as stored that a core converts of such files in a second."""
        own = self.of_dataset(dataset)
        return own.gzip if compressed else own.plain

    def is_measured(self, dataset: str, compressed: bool) -> bool:
        """Whether the ledger has measured such files."""
        found = self.measured.get(dataset)
        return found is not None and (found.compressed if compressed else found.plain) is not None

    def file_seconds(self, dataset: str, compressed: bool, size: int) -> float:
        """Time of a core for one such file: that of its bytes, or of its request where that takes longer."""
        return max(size / self.rate(dataset, compressed), 1 / FILES_PER_SECOND)

    def work(
        self, plain_bytes: int, gzip_bytes: int, longest_gzip: int, gzip_files: int, files: int, manifests: int = 1
    ) -> Work:
        """Work on ``files`` of these sizes as stored, in ``manifests`` of different datasets.

        Each file takes the time of its request at least.
        """
        compressed_seconds = gzip_bytes / self.gzip
        seconds = max(plain_bytes / self.plain + compressed_seconds, files / FILES_PER_SECOND)
        inflated = plain_bytes + gzip_bytes * self.ratio
        splits = -(-plain_bytes // self.split_bytes) + gzip_files
        tasks = max(manifests, min(round(inflated / self.task_bytes), splits))
        return Work(seconds, tasks, max(seconds / tasks, longest_gzip / self.gzip), compressed_seconds, inflated)


# Measured of the stream lane means: on the local cloud, 2 busy cores, with 25 ms more for each read and 40 ms more for
# each write (docs/sizing.md, "Compared with real runs").
POLLERS = 5
"""Batches of a queue that Lambda collects at the same time (AWS Lambda Developer Guide, "Using Lambda with Amazon
SQS"); it adds pollers under load, which is not simulated."""
ROUTE_SECONDS = 2.0
"""From the end of a window until its manifests are QUEUED and their pointers are in the inbox. Measured: 0.9; the rest,
until S3 has delivered the last event and the function is invoked, is assumed."""
PORTION_SECONDS = 4.0
"""From a trigger until a manifest is published, besides its tasks: Spark lists and reads the pointers; claims, plan,
commit, publish. Measured: 4 to 8, and 2 to 3 without the added time."""
URGENT_PORTION_SECONDS = 1.5
"""The same from a look for urgent pointers. Measured: up to 1.3."""
TASK_SECONDS = 0.25
"""Of a task besides its bytes: its requests, and its start in Spark. Measured: 0.2 to 0.3, and 0.1 without the added
time."""
LOOK_SECONDS = 5.0
"""Interval between two looks for urgent pointers (streaming_job/urgent.py)."""
URGENT_CORE_SHARE = 0.5
"""Of the cores, for urgent manifests beside a micro-batch: Spark's pools share them (the same module)."""
EXECUTOR_IDLE_SECONDS = 60.0
"""An executor without work is given back after it (Spark, ``spark.dynamicAllocation.executorIdleTimeout``)."""
FIRST_EXECUTOR_SECONDS = night.RAMP_SECONDS
"""Assumed: until a driver that was alone has an executor."""
PLAN_SECONDS = 30.0
"""Assumed: from the schedule until the first runs are started."""
SETTLE_SECONDS = 60.0
"""Assumed: from the end of the last run until the verdict."""


class Basis(StrEnum):
    """How a value is known."""

    MEASURED = "measured"
    LISTED = "listed"
    ASSUMED = "assumed"
    SETTING = "setting"


@dataclass(frozen=True, slots=True)
class Assumption:
    """A value that the outcome depends on."""

    name: str
    value: float
    unit: str
    basis: Basis
    source: str


MEASURED, LISTED, ASSUMED, SETTING = Basis
HERE = "sizing/assumptions.py"


def assumptions(settings: Settings, ratio: float, stream_jobs: int = 1) -> tuple[Assumption, ...]:
    """All values, in the order of a file's path.

    ``ratio`` is the bytes of NDJSON for each byte of a compressed file, ``stream_jobs`` the number of streaming jobs
    that the simulated one stands for.
    """
    return tuple(Assumption(*row) for row in _rows(settings, ratio, stream_jobs))


def _rows(settings: Settings, ratio: float, stream_jobs: int) -> Iterator[tuple[str, float, str, Basis, str]]:
    window, network = settings.input.event_window_seconds, settings.price.mb_per_second_per_core
    yield "window in which events are collected", window, "s", SETTING, "input.event_window_seconds"
    yield "batches of events at the same time", POLLERS, "", LISTED, "AWS Lambda Developer Guide"
    yield "events to QUEUED", ROUTE_SECONDS, "s", ASSUMED, HERE
    basis = ASSUMED if network == PriceSettings().mb_per_second_per_core else SETTING
    yield "input that a core reads", network, "MB/s", basis, "price.mb_per_second_per_core"
    yield "NDJSON that a core converts", CPU_PLAIN, "MB/s", MEASURED, "docs/performance.md, nested"
    if gzip := given_gzip_speed(settings):
        key = "price.compressed_mb_per_second_per_core"
        yield "bytes of gzip files that a core converts", gzip, "MB/s", SETTING, key
    else:
        yield "NDJSON of gzip files that a core converts", CPU_GZIP, "MB/s", MEASURED, "docs/performance.md, gzip"
    yield "NDJSON for each byte of a gzip file", ratio, "", ASSUMED, "gzip.ratio of the profile"
    yield "Parquet for each byte of NDJSON", OUTPUT_RATIO, "", MEASURED, "docs/performance.md, flat"
    yield "files that a core reads, at most", FILES_PER_SECOND, "/s", MEASURED, "lake/speed.py"
    if stream_jobs > 1:
        what = "streaming jobs, simulated as one with all their executors"
        yield what, stream_jobs, "", ASSUMED, "sizing/options.py"
    yield "interval between looks for urgent files", LOOK_SECONDS, "s", LISTED, "streaming_job/urgent.py"
    yield "cores for urgent files beside others", URGENT_CORE_SHARE, "", ASSUMED, HERE
    yield "claim, commit and publish of a portion", PORTION_SECONDS, "s", MEASURED, HERE
    yield "the same of urgent files", URGENT_PORTION_SECONDS, "s", MEASURED, HERE
    yield "a task in the stream besides its bytes", TASK_SECONDS, "s", MEASURED, HERE
    idle = "Spark, spark.dynamicAllocation.executorIdleTimeout"
    yield "an executor is idle before it is given back", EXECUTOR_IDLE_SECONDS, "s", LISTED, idle
    workers = DRIVERS + stream_cluster(settings).min_executors
    if settings.stream.on_emr:
        yield "start of an executor beside a driver that was alone", FIRST_EXECUTOR_SECONDS, "s", ASSUMED, HERE
        yield "workers of a quiet stream", workers, "", SETTING, "stream.emr_min_executors"
    else:
        yield "workers of a quiet stream", workers, "", ASSUMED, "router/estimate/stream_cluster.py"
    quota, estimate = settings.quota, "router/estimate/night.py"
    yield "schedule to first run", PLAN_SECONDS, "s", ASSUMED, HERE
    yield "start of a Glue run", glue.START_SECONDS, "s", ASSUMED, estimate
    yield "start of an EMR Serverless run", emr_serverless.START_SECONDS, "s", ASSUMED, estimate
    yield "wait for Flex capacity", glue.FLEX_WAIT_MINUTES, "min", ASSUMED, "lake/engines/glue.py"
    yield "auto scaling adds the last worker after", night.RAMP_SECONDS, "s", ASSUMED, estimate
    yield "first idle core to end of a run", night.TAIL_SECONDS, "s", ASSUMED, estimate
    yield "the same of compressed files, as a share of the longest", night.TAIL_OF_LONGEST, "", ASSUMED, estimate
    yield "Step Functions asks, runs of up to 10 minutes", night.SHORT_POLL_SECONDS, "s", ASSUMED, estimate
    yield "Step Functions asks, longer runs", night.LONG_POLL_SECONDS, "s", ASSUMED, estimate
    yield "last run to verdict", SETTLE_SECONDS, "s", ASSUMED, HERE
    yield "share of the time until the deadline that a plan leaves", MARGIN, "", LISTED, "router/estimate/night.py"
    yield "quota of Glue", quota.dpus, "DPU", SETTING, "quota.dpus"
    yield "quota of Glue", quota.job_runs, "job runs", SETTING, "quota.job_runs"
    if settings.batch.uses_emr:
        yield "limit of EMR Serverless", settings.emr.max_vcpus, "vCPU", SETTING, "emr.max_vcpus"
    for key, unit in (("dpu_hour", "DPU"), ("dpu_hour_flex", "DPU"), ("emr_vcpu_hour", "vCPU"), ("emr_gb_hour", "GB")):
        yield f"price.{key}", getattr(settings.price, key), f"$/{unit}-hour", LISTED, settings.price.source
    yield "price of Arm as a share of x86-64", emr_serverless.ARM_PRICE, "", LISTED, "lake/engines/emr_serverless.py"


def measured_waits(waits: Mapping[str, float]) -> Iterator[Assumption]:
    """The seconds of each engine that take the place of its start and its wait for capacity."""
    for engine, seconds in sorted(waits.items()):
        yield Assumption(f"start of a run of {engine}, and its wait", seconds, "s", MEASURED, "the ledger")


def dataset_speeds(speed: Speed, kinds: Iterable[tuple[str, bool]]) -> Iterator[Assumption]:
    """The speed of each dataset: measured by the ledger, else assumed as that of datasets that it does not know.

    ``kinds`` are names of datasets, and whether their compressed files are meant; those without a name are left out.
    """
    for dataset, compressed in kinds:
        found = speed.measured.get(dataset)
        measured = found and (found.compressed if compressed else found.plain)
        basis, source = (MEASURED, "the ledger") if measured else (ASSUMED, "not measured; as above")
        if dataset:
            what = f"bytes of {'compressed' if compressed else 'plain'} files of {dataset} that a core converts"
            yield Assumption(what, round(speed.rate(dataset, compressed) / MEGABYTE, 3), "MB/s", basis, source)
