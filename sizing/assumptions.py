"""The basis of a simulation: the values that the ledger has measured, and all assumed values."""

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from lake.engines import emr_serverless, glue
from lake.ledger import DatasetSpeed
from lake.manifest import INFLATED_RATIO
from lake.settings import Settings, lanes
from lake.settings.operation import PriceSettings
from lake.speed import FILES_PER_SECOND, MEGABYTE
from router.estimate import night
from router.estimate.other_costs import OUTPUT_RATIO
from router.stream import spill
from sizing import batch_lane, routing, stream_lane
from sizing.result import Assumption, Basis


class Measured(NamedTuple):
    """The measurements in the ledger of a stage."""

    speeds: Mapping[str, DatasetSpeed]
    waits: Mapping[str, float]
    """Seconds until a job run is billed, by engine."""


NOTHING_MEASURED = Measured({}, {})
MEASURED, LISTED, ASSUMED, SETTING = Basis
RATIO = "gzip.ratio of the profile"
PRICES = (("dpu_hour", "DPU"), ("dpu_hour_flex", "DPU"), ("emr_vcpu_hour", "vCPU"), ("emr_gb_hour", "GB"))


def compressed_speed(price: PriceSettings, ratio: float) -> float:
    """Return the assumed speed of a core in MB/s, as stored, for files whose NDJSON is ``ratio`` times as large."""
    default = PriceSettings().compressed_mb_per_second_per_core
    return default if ratio == INFLATED_RATIO else min(default * INFLATED_RATIO / ratio, price.mb_per_second_per_core)


def assumptions(
    settings: Settings, measured: Measured, kinds: Iterable[tuple[str, bool]], gzip_ratio: float
) -> Iterator[Assumption]:
    """Yield all values, in the order of a file's path.

    ``kinds`` are names of datasets, and whether their compressed files are meant. ``gzip_ratio``: bytes of NDJSON for
    each byte of a compressed file.
    """
    for row in _rows(settings, gzip_ratio):
        yield Assumption(*row)
    for engine, seconds in sorted(measured.waits.items()):
        yield Assumption(f"start of a run of {engine}, and its wait", seconds, "s", MEASURED, "the ledger")
    for dataset, compressed in kinds:
        found = measured.speeds.get(dataset)
        if speed := found and (found.compressed if compressed else found.plain):
            what = f"bytes of {'compressed' if compressed else 'plain'} files of {dataset} that a core converts"
            yield Assumption(what, round(speed / MEGABYTE, 3), "MB/s", MEASURED, "the ledger")


def _rows(settings: Settings, gzip_ratio: float) -> Iterator[tuple[str, float, str, Basis, str]]:
    price, default = settings.price, PriceSettings()
    window = settings.input.event_window_seconds
    yield "window in which events are collected", window, "s", SETTING, "input.event_window_seconds"
    yield "batches of events at the same time", routing.POLLERS, "", LISTED, "AWS Lambda Developer Guide"
    yield "events to QUEUED", routing.ROUTE_SECONDS, "s", ASSUMED, "sizing/routing.py"
    for what, key in (("input", "mb_per_second_per_core"), ("compressed input", "compressed_mb_per_second_per_core")):
        value, basis, source = getattr(price, key), SETTING, f"price.{key}"
        if value == getattr(default, key):
            basis = ASSUMED
        elif what == "compressed input" and value == compressed_speed(price, gzip_ratio):
            basis, source = ASSUMED, RATIO
        yield f"{what} that a core converts, as stored", value, "MB/s", basis, source
    yield "NDJSON for each byte of a compressed file", gzip_ratio, "", ASSUMED, RATIO
    yield "Parquet for each byte of NDJSON", OUTPUT_RATIO, "", MEASURED, "docs/performance.md, flat"
    yield "files that a core reads, at most", FILES_PER_SECOND, "/s", MEASURED, "lake/speed.py"
    if settings.stream.jobs > 1:
        what = "streaming jobs, simulated as one with all their executors"
        yield what, settings.stream.jobs, "", ASSUMED, "sizing/options.py"
    yield "interval between looks for urgent files", lanes.MAX_LOOK_SECONDS, "s", LISTED, "lake/settings/lanes.py"
    here = "sizing/stream_lane.py"
    yield "cores for urgent files next to others", stream_lane.URGENT_CORE_SHARE, "", ASSUMED, here
    yield "claim, commit and publish of a portion", stream_lane.PORTION_SECONDS, "s", MEASURED, here
    yield "the same for urgent files", stream_lane.URGENT_PORTION_SECONDS, "s", MEASURED, here
    yield "a task in the stream, in addition to its bytes", spill.TASK_SECONDS, "s", MEASURED, "router/stream/spill.py"
    yield "an executor is idle before it is released", stream_lane.EXECUTOR_IDLE_SECONDS, "s", LISTED, here
    if settings.stream.on_emr:
        yield "first executor of a driver that was alone", stream_lane.FIRST_EXECUTOR_SECONDS, "s", ASSUMED, here
    workers = settings.stream.jobs * (night.DRIVERS + settings.stream.min_executors)
    yield "workers of a quiet stream", workers, "", ASSUMED, "lake/settings/lanes.py"
    yield "schedule to first run", batch_lane.PLAN_SECONDS, "s", ASSUMED, "sizing/batch_lane.py"
    estimate = "router/estimate/night.py"
    yield "start of a Glue run", glue.START_SECONDS, "s", ASSUMED, estimate
    yield "start of an EMR Serverless run", emr_serverless.START_SECONDS, "s", ASSUMED, estimate
    yield "wait for Flex capacity", glue.FLEX_WAIT_MINUTES, "min", ASSUMED, "lake/engines/glue.py"
    yield "auto scaling adds the last worker after", night.RAMP_SECONDS, "s", ASSUMED, estimate
    yield "first idle core to end of a run", night.TAIL_SECONDS, "s", ASSUMED, estimate
    yield "the same for compressed files, as a share of the longest", night.TAIL_OF_LONGEST, "", ASSUMED, estimate
    yield "Step Functions asks, runs of up to 10 minutes", night.SHORT_POLL_SECONDS, "s", ASSUMED, estimate
    yield "Step Functions asks, longer runs", night.LONG_POLL_SECONDS, "s", ASSUMED, estimate
    yield "share of the time until the deadline that a plan leaves", night.MARGIN, "", LISTED, estimate
    yield "quota of Glue", settings.quota.dpus, "DPU", SETTING, "quota.dpus"
    yield "quota of Glue", settings.quota.job_runs, "job runs", SETTING, "quota.job_runs"
    if settings.batch.uses_emr:
        yield "limit of EMR Serverless", settings.emr.max_vcpus, "vCPU", SETTING, "emr.max_vcpus"
    for key, unit in PRICES:
        yield f"price.{key}", getattr(price, key), f"$/{unit}-hour", LISTED, price.source
    yield "price of Arm as a share of x86-64", emr_serverless.ARM_PRICE, "", LISTED, "lake/engines/emr_serverless.py"
