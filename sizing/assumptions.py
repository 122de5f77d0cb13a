"""What a simulation rests on: each value, whether it was measured, listed or assumed, and where it comes from."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from lake.settings.price import PriceSettings
from router.estimate import offer
from router.estimate.choose import MARGIN
from router.estimate.night import DRIVERS
from router.estimate.speed import NOT_MEASURED
from router.estimate.stream_cluster import stream_cluster
from router.merge.merge import TIME_TO_MERGE
from router.merge.write_pace import MAX_INDEX_WRITES_PER_SECOND
from sizing import batch_lane, night_times, routing, speed, stream_lane, stream_times, stream_workers
from sizing.options import comparable_emr

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from lake.settings import Settings

BENCH = "docs/performance.md"
STREAM_TIMES = "sizing/stream_times.py"


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


def assumptions(settings: Settings, ratio: float, stream_jobs: int = 1) -> tuple[Assumption, ...]:
    """All of them, in the order of a file's path.

    Parameters
    ----------
    ratio
        That of the compressed files.
    stream_jobs
        Streaming jobs for which the one of the simulation stands.
    """
    stream = _stream(settings, stream_jobs)
    return (*_routing(settings), *_conversion(settings, ratio), *stream, *_night(settings), *_prices(settings))


def _routing(settings: Settings) -> Iterator[Assumption]:
    window, key = settings.input.event_window_seconds, "input.event_window_seconds"
    yield Assumption("window in which events are collected", window, "s", Basis.SETTING, key)
    yield Assumption(
        "batches of events at the same time", routing.POLLERS, "", Basis.LISTED, "AWS Lambda Developer Guide"
    )
    yield Assumption("events to QUEUED", stream_times.ROUTE_SECONDS, "s", Basis.ASSUMED, STREAM_TIMES)


def _conversion(settings: Settings, ratio: float) -> Iterator[Assumption]:
    network = settings.price.mb_per_second_per_core
    default = PriceSettings().mb_per_second_per_core
    basis = Basis.ASSUMED if network == default else Basis.SETTING
    yield Assumption("input that a core reads", network, "MB/s", basis, "price.mb_per_second_per_core")
    yield Assumption("NDJSON that a core converts", speed.CPU_PLAIN, "MB/s", Basis.MEASURED, f"{BENCH}, nested")
    gzip, key = speed.given_gzip_speed(settings), "price.compressed_mb_per_second_per_core"
    if gzip is None:
        what = "NDJSON of gzip files that a core converts"
        yield Assumption(what, speed.CPU_GZIP, "MB/s", Basis.MEASURED, f"{BENCH}, gzip")
    else:
        yield Assumption("bytes of gzip files that a core converts", gzip, "MB/s", Basis.SETTING, key)
    yield Assumption("NDJSON for each byte of a gzip file", ratio, "", Basis.ASSUMED, "gzip.ratio of the profile")
    yield Assumption("Parquet for each byte of NDJSON", speed.OUTPUT_RATIO, "", Basis.MEASURED, f"{BENCH}, flat")
    yield Assumption("time of a file besides its bytes", 0, "s", Basis.ASSUMED, "files are read ahead")


def dataset_speeds(found: speed.Speed, kinds: Iterable[tuple[str, bool]]) -> Iterator[Assumption]:
    """The speed of each dataset, by what the ledger has measured, else as of datasets that it does not know.

    Parameters
    ----------
    kinds
        Names of datasets, and whether it is about compressed files; those without a name are left out.
    """
    for dataset, compressed in kinds:
        own = found.measured.get(dataset, NOT_MEASURED)
        measured = own.compressed if compressed else own.plain
        basis, source = (
            (Basis.ASSUMED, "not measured; as above") if measured is None else (Basis.MEASURED, "the ledger")
        )
        if dataset:
            what = f"bytes of {'compressed' if compressed else 'plain'} files of {dataset} that a core converts"
            yield Assumption(what, round(found.rate(dataset, compressed) / speed.MEGABYTE, 3), "MB/s", basis, source)


def _stream(settings: Settings, stream_jobs: int) -> Iterator[Assumption]:
    here, workers = "sizing/stream_lane.py", DRIVERS + stream_cluster(settings).min_executors
    if stream_jobs > 1:
        what = "streaming jobs, simulated as one with all their executors"
        yield Assumption(what, stream_jobs, "", Basis.ASSUMED, "sizing/options.py")
    looks = "streaming_job/urgent.py"
    yield Assumption("interval between looks for urgent files", stream_lane.LOOK_SECONDS, "s", Basis.LISTED, looks)
    yield Assumption("cores for urgent files beside others", stream_lane.URGENT_CORE_SHARE, "", Basis.ASSUMED, here)
    for what, seconds in (
        ("claim, commit and publish of a portion", stream_times.PORTION_SECONDS),
        ("the same of urgent files", stream_times.URGENT_PORTION_SECONDS),
        ("a task in the stream besides its bytes", stream_times.TASK_SECONDS),
    ):
        yield Assumption(what, seconds, "s", Basis.MEASURED, STREAM_TIMES)
    yield Assumption(
        "an executor is idle before it is given back",
        stream_workers.EXECUTOR_IDLE_SECONDS,
        "s",
        Basis.LISTED,
        "Spark, spark.dynamicAllocation.executorIdleTimeout",
    )
    if settings.stream.on_emr:
        first, key = stream_workers.FIRST_EXECUTOR_SECONDS, "stream.emr_min_executors"
        yield Assumption(
            "start of an executor beside a driver that was alone",
            first,
            "s",
            Basis.ASSUMED,
            "sizing/stream_workers.py",
        )
        yield Assumption("workers of a quiet stream", workers, "", Basis.SETTING, key)
    else:
        source = "router/estimate/stream_cluster.py"
        yield Assumption("workers of a quiet stream", workers, "", Basis.ASSUMED, source)


def _night(settings: Settings) -> Iterator[Assumption]:
    here, estimate = "sizing/batch_lane.py", "router/estimate/offer.py"
    times, margin = "sizing/night_times.py", "router/estimate/choose.py"
    pace = MAX_INDEX_WRITES_PER_SECOND
    yield Assumption("schedule to first run", night_times.PLAN_SECONDS, "s", Basis.ASSUMED, times)
    yield Assumption("pace of merging", pace, "writes/s", Basis.LISTED, "router/merge/write_pace.py")
    yield Assumption("time to merge", TIME_TO_MERGE.total_seconds(), "s", Basis.LISTED, "router/merge/merge.py")
    swept = "manifests that sweeps merge before the night"
    yield Assumption(swept, batch_lane.SWEPT_WRITES_PER_HOUR, "/h", Basis.LISTED, "router/sweep/small_manifests.py")
    yield Assumption("start of a Glue run", offer.GLUE_START_SECONDS, "s", Basis.ASSUMED, estimate)
    yield Assumption("start of an EMR Serverless run", offer.EMR_START_SECONDS, "s", Basis.ASSUMED, estimate)
    wait, factor = settings.price.flex_wait_minutes, settings.price.emr_speed_factor
    yield Assumption("wait for Flex capacity", wait, "min", Basis.ASSUMED, "price.flex_wait_minutes")
    yield Assumption("speed of a vCPU of EMR Serverless", factor, "x Glue's", Basis.ASSUMED, "price.emr_speed_factor")
    yield Assumption("auto scaling adds the last worker after", offer.RAMP_SECONDS, "s", Basis.ASSUMED, estimate)
    yield Assumption("first idle core to end of a run", offer.TAIL_SECONDS, "s", Basis.ASSUMED, estimate)
    yield Assumption(
        "Step Functions asks, runs of up to 10 minutes", offer.SHORT_POLL_SECONDS, "s", Basis.ASSUMED, estimate
    )
    yield Assumption("Step Functions asks, longer runs", offer.LONG_POLL_SECONDS, "s", Basis.ASSUMED, estimate)
    yield Assumption("work that a failed run repeats", batch_lane.FAILED_WORK, "", Basis.ASSUMED, here)
    yield Assumption("last run to verdict", night_times.SETTLE_SECONDS, "s", Basis.ASSUMED, times)
    yield Assumption("share of the time until the deadline that a plan leaves", MARGIN, "", Basis.LISTED, margin)
    yield Assumption("quota of Glue", settings.quota.dpus, "DPU", Basis.SETTING, "quota.dpus")
    yield Assumption("quota of Glue", settings.quota.job_runs, "job runs", Basis.SETTING, "quota.job_runs")
    source = "emr.max_vcpus" if settings.batch.uses_emr else "as many vCPUs as Glue's quota leaves"
    vcpus = comparable_emr(settings).max_vcpus
    yield Assumption("limit of EMR Serverless", vcpus, "vCPU", Basis.SETTING, source)


def _prices(settings: Settings) -> Iterator[Assumption]:
    price = settings.price
    for name, value, unit in (
        ("price.dpu_hour", price.dpu_hour, "$/DPU-hour"),
        ("price.dpu_hour_flex", price.dpu_hour_flex, "$/DPU-hour"),
        ("price.emr_vcpu_hour", price.emr_vcpu_hour, "$/vCPU-hour"),
        ("price.emr_gb_hour", price.emr_gb_hour, "$/GB-hour"),
        ("price.emr_arm_vcpu_hour", price.emr_arm_vcpu_hour, "$/vCPU-hour"),
        ("price.emr_arm_gb_hour", price.emr_arm_gb_hour, "$/GB-hour"),
    ):
        yield Assumption(name, value, unit, Basis.LISTED, price.origin)
