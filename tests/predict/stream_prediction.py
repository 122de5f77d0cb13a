"""What the simulator says of a window of the stream lane, after it has learned its times from other windows."""

from __future__ import annotations

import math
import statistics
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from lake.compression import has_compressed_name
from simulate.arrivals import DAY_SECONDS
from simulate.day import route_day
from simulate.listing import ListedArrivals, ListedFile
from simulate.speed import Speed, Work
from simulate.stream_times import StreamMachine, StreamTimes
from simulate.stream_workers import StreamWorkers
from tests.predict.stream import is_urgent

if TYPE_CHECKING:
    from lake.settings import Settings
    from tests.load.published import PublishedManifest
    from tests.predict.stream import MeasuredStream

MACHINE = StreamMachine(cores=2, workers=1)
"""A run of the local cloud (local/job_launch.py, ``spark.master``): its driver and both cores are one process."""
MIDDAY = datetime(2026, 11, 18, 12, tzinfo=UTC).timestamp()
RATIO = 8.0


@dataclass(frozen=True, slots=True)
class StreamCalibration:
    """What other windows measured; all that the simulator is told of the local cloud."""

    plain: float
    """Bytes as stored a second and core."""
    compressed: float
    task_seconds: float
    """Of a task besides its bytes."""
    route_seconds: float
    """From the end of a window of events until its manifests are in the inbox."""
    micro_batch_seconds: float
    """From a trigger until a manifest is published, besides the time of tasks."""
    urgent_seconds: float
    """The same from a look for urgent pointers."""
    stop_seconds: float
    """From the request to stop to the end of the run."""


def calibrate(found: MeasuredStream, settings: Settings) -> StreamCalibration:
    """Means over the files of a window."""
    task, plain, compressed = _task_times(found)
    routes = {times.window_end: times.queued - times.window_end for times in found.files.values()}
    urgent = [item.published - item.started - item.core_seconds for item in found.manifests if is_urgent(item.keys[0])]
    # The shortest of the waits for a look is about none.
    after_look = min(item.started - found.files[item.keys[0]].queued for item in found.manifests)
    return StreamCalibration(
        plain,
        compressed,
        task,
        statistics.mean(routes.values()),
        statistics.mean(_besides_tasks(found, settings)),
        after_look + statistics.mean(urgent),
        found.ended - found.stop_requested,
    )


def _task_times(found: MeasuredStream) -> tuple[float, float, float]:
    """Seconds of a task besides its bytes, and bytes as stored a second and core: of plain files, of compressed ones.

    A manifest of these loads is one task.
    """
    sizes, seconds, mixed = [], [], []
    for item in found.manifests:
        compressed = sum(found.files[key].size for key in item.keys if has_compressed_name(key))
        plain = sum(found.files[key].size for key in item.keys) - compressed
        if compressed:
            mixed.append((plain, compressed, item.core_seconds))
        else:
            sizes.append(plain)
            seconds.append(item.core_seconds)
    slope, task = statistics.linear_regression(sizes, seconds)
    rest = sum(total - task - plain * slope for plain, _, total in mixed)
    return task, 1 / slope, sum(compressed for _, compressed, _ in mixed) / rest


def _besides_tasks(found: MeasuredStream, settings: Settings) -> list[float]:
    """Seconds from the begin of its micro-batch to the publication of each peak manifest, besides the time of tasks."""
    trigger, seconds, begin, ended = settings.stream.trigger_seconds, [], 0.0, 0.0
    for items in _micro_batches(found):
        queued = sorted(found.files[item.keys[0]].queued for item in items)
        # As Spark does: at the next trigger, or at once after a micro-batch that took longer than the interval. Whether
        # it did is not known exactly, but nothing is converted before the begin.
        due = -(-max(ended, queued[0]) // trigger) * trigger
        at_once = (ended - begin > trigger and queued[0] <= ended) or due > items[0].started
        begin = max(ended, queued[0]) if at_once else due
        items.sort(key=lambda item: found.files[item.keys[0]].queued)
        works = [Work(item.core_seconds, 1, item.core_seconds) for item in items]
        ends = StreamWorkers(settings, StreamTimes(task=0.0, machine=MACHINE)).convert(works, begin, 0.0)
        seconds += [item.published - end for item, end in zip(items, ends, strict=True)]
        ended = max(item.published for item in items)
    return seconds


def _micro_batches(found: MeasuredStream) -> list[list[PublishedManifest]]:
    """The peak manifests of each micro-batch, oldest first: the next one begins when all of them are published."""
    batches: list[list[PublishedManifest]] = []
    peak = [item for item in found.manifests if not is_urgent(item.keys[0])]
    for item in sorted(peak, key=lambda item: item.started):
        if not batches or item.started > max(other.published for other in batches[-1]):
            batches.append([])
        batches[-1].append(item)
    return batches


@dataclass(frozen=True, slots=True)
class StreamFigures:
    """What is predicted and measured of a window; latencies in seconds, from the upload until the rows can be read."""

    latency_p50: float
    latency_p95: float
    urgent_p50: float
    urgent_p95: float
    runs: int
    manifests: int
    dollars: float


def measured(found: MeasuredStream) -> StreamFigures:
    """The figures of a window that was measured."""
    every, urgent = (found.latencies(urgent=urgent) for urgent in (False, True))
    return StreamFigures(
        _percentile(every, 0.5),
        _percentile(every, 0.95),
        _percentile(urgent, 0.5),
        _percentile(urgent, 0.95),
        len({item.job_run for item in found.manifests}),
        len(found.manifests),
        found.dollars,
    )


def _percentile(latencies: list[float], share: float) -> float:
    return latencies[math.ceil(share * len(latencies)) - 1]


def predict(found: MeasuredStream, learned: StreamCalibration, settings: Settings) -> StreamFigures:
    """The figures of a window by the simulator: of ``found`` it takes the arrivals, and when the run was there."""
    first = min(times.put for times in found.files.values()) // 3600 * 3600
    files = [ListedFile(key, times.size, times.put - first + MIDDAY) for key, times in found.files.items()]
    arrivals = ListedArrivals(files, "the local cloud", settings, None)
    day = arrivals.night.timestamp() - DAY_SECONDS
    window = (found.begun - first + MIDDAY - day, found.stop_requested + learned.stop_seconds - first + MIDDAY - day)
    speed = replace(Speed.of(settings, RATIO), plain=learned.plain, gzip=learned.compressed)
    times = StreamTimes(
        learned.route_seconds,
        learned.micro_batch_seconds,
        learned.urgent_seconds,
        learned.task_seconds,
        start=0.0,
        machine=MACHINE,
    )
    routed = route_day(arrivals, settings, speed, 0.0, times, window)
    assert not routed.waiting, "files of the stream lane went to the batch lane"
    every, urgent = routed.stream.latencies, routed.stream.urgent_latencies
    return StreamFigures(
        every.percentile(0.5) or 0.0,
        every.percentile(0.95) or 0.0,
        urgent.percentile(0.5) or 0.0,
        urgent.percentile(0.95) or 0.0,
        routed.stream.runs,
        routed.stream_manifests,
        routed.stream.dollars,
    )
