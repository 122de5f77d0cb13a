"""What the simulator says of a night on the local cloud, after it has learned its times from another night."""

from __future__ import annotations

import statistics
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import pairwise
from typing import TYPE_CHECKING

from router.estimate.offer import RunTimes
from simulate.arrivals import DAY_SECONDS, FileGroup, windows_of_day
from simulate.batch_lane import collect_backlog, simulate_night
from simulate.night_times import NightTimes, RunMachine
from simulate.routing import Router
from simulate.speed import Speed

if TYPE_CHECKING:
    from collections.abc import Mapping

    from lake.settings import Settings
    from tests.predict.night import MeasuredNight

CORES = 2.0
"""Of a job run of the local cloud (local/job_launch.py, ``spark.master``)."""


@dataclass(frozen=True, slots=True)
class Calibration:
    """What other nights measured; all that the simulator is told of the local cloud."""

    plain: float
    """Bytes as stored a second and core."""
    compressed: float
    plan_seconds: float
    """From the start of the execution to the first job run."""
    start_seconds: float
    """From StartJobRun to the first conversion."""
    tail_seconds: float
    """Of a run, besides its start and the time of its tasks on its cores."""
    between_seconds: float
    """From the end of a job run to the start of the next one."""
    settle_seconds: float
    """From the end of the last job run to that of the execution."""


def calibrate(night: MeasuredNight) -> Calibration:
    """Medians over the job runs of a night."""
    runs = night.job_runs
    return Calibration(
        night.speed(compressed=False),
        night.speed(compressed=True),
        runs[0].started - night.started,
        statistics.median(run.first_task - run.started for run in runs),
        statistics.median(run.ended - run.first_task - run.core_seconds / CORES for run in runs),
        statistics.median(later.started - run.ended for run, later in pairwise(runs)),
        night.ended - runs[-1].ended,
    )


@dataclass(frozen=True, slots=True)
class NightFigures:
    """What is predicted and measured of a night."""

    minutes: float
    """From its start to the verdict."""
    latency_p50: float
    """Seconds from the upload of a file until its rows can be read."""
    latency_p95: float
    runs: int
    manifests: int
    dollars: float


def measured(night: MeasuredNight) -> NightFigures:
    """The figures of a night that ran."""
    latencies = night.latencies
    return NightFigures(
        (night.ended - night.started) / 60,
        statistics.median(latencies),
        latencies[int(0.95 * len(latencies))],
        len(night.job_runs),
        night.manifests,
        night.dollars,
    )


def predict(
    sizes: Mapping[str, int], waits: Mapping[str, float], found: Calibration, settings: Settings
) -> NightFigures:
    """The figures of a night by the simulator.

    Parameters
    ----------
    sizes
        Bytes as stored, by key.
    waits
        Seconds between the upload of each file and the start of the night, by key.
    """
    start = datetime(2026, 11, 18, 22, tzinfo=UTC)
    speed = replace(Speed.of(settings, 8.0), plain=found.plain, gzip=found.compressed)
    groups = [FileGroup(key, size, 1) for key, size in sizes.items()]
    routed = Router(settings, speed, start).route(windows_of_day(settings) - 1, groups, spilling=False)
    arrived = DAY_SECONDS - statistics.mean(waits.values())
    backlog = collect_backlog([replace(manifest, arrived=arrived) for manifest in routed], settings)
    runs = RunTimes(0.0, found.tail_seconds, 0.0, 2 * found.between_seconds, 2 * found.between_seconds, True)
    times = NightTimes(found.plan_seconds, found.settle_seconds, RunMachine(CORES, found.start_seconds, runs))
    night = simulate_night(backlog, settings, start, 0.0, times)
    assert night is not None
    p50, p95 = (night.latencies.percentile(share) for share in (0.5, 0.95))
    assert p50 is not None
    assert p95 is not None
    return NightFigures(
        (night.end - start).total_seconds() / 60,
        p50,
        p95,
        len(night.planned.runs),
        sum(len(run.manifests) for run in night.planned.runs),
        night.dollars,
    )
