"""Dollars and ends of nights, calculated once more: tasks are given to cores one by one, and nothing of the product's
own arithmetic is used. From the simulation come only what it decided: runs, workers, and how many are side by side.
"""

import heapq
import math
from dataclasses import dataclass
from datetime import datetime
from random import Random

import pytest

from sizing.day import simulate_option
from sizing.options import ALL_BATCH, routing_options
from sizing.profile import Profile
from sizing.result import NightResult
from tests.unit.sizing import world

MB, GB = 10**6, 10**9
OBJECT, RANGE = 128 << 20, 8 << 20
HOUR_OF_WORKER = {"glue": 0.308, "glue-flex": 0.203, "emr-serverless": 4 * 0.052624 + 16 * 0.0057785}
"""US dollars for a worker of 4 vCPUs and 16 GB."""
START = {"glue": 60, "glue-flex": 60 + 300, "emr-serverless": 90}


@dataclass(frozen=True)
class Day:
    """Files of a day; sizes in bytes as stored."""

    plain: dict[int, int]
    """Size -> number."""
    gzip: dict[int, int]
    engine: str
    datasets: int = 1

    def profile(self) -> Profile:
        sizes = {**self.plain, **self.gzip}
        shares = [{"bytes": size, "share": self.plain.get(size, 0) + self.gzip.get(size, 0)} for size in sizes]
        compressed = sum(self.gzip.values()) / self.files
        return world.profile(files=self.files, datasets=self.datasets, gzip_share=compressed, sizes=shares)

    @property
    def files(self) -> int:
        return sum(self.plain.values()) + sum(self.gzip.values())

    def tasks(self, manifests: int) -> list[float]:
        """Seconds of a core for each task: compressed files one by one, plain input in parts of one output file."""
        seconds = [size / min(40 * MB, 15.75 * MB) for size, n in self.gzip.items() for _ in range(n)]
        for size, number in self.plain.items():
            whole = max(number * size / 40e6, number / 1350)
            parts = max(manifests, round(number * size * 0.2 / OBJECT))
            seconds += [whole / parts] * parts
        return seconds


DAYS = {
    "large": Day({4_500 * MB: 20_000}, {}, "glue-flex"),
    "small": Day({MB: 200_000}, {}, "glue", datasets=5),
    "gzip": Day({}, {size * GB: 1_500 for size in (3, 4, 5, 6)}, "emr-serverless", datasets=8),
    "mixed": Day({2 * GB: 8_000}, {2 * GB: 12_000}, "glue", datasets=2),
    "tiny": Day({10_000: 1_000_000}, {}, "glue-flex"),
}


def makespan(tasks: list[float], cores: int) -> float:
    free = [0.0] * cores
    for seconds in tasks:
        heapq.heapreplace(free, free[0] + seconds)
    return max(free)


def night_of(tasks: list[float], engine: str, night: NightResult) -> tuple[float, float]:
    """Dollars, and seconds from its start to its end."""
    Random(7).shuffle(tasks)
    cores, places = 4 * (night.workers - 1), [0.0] * night.concurrency
    dollars = 0.0
    for number in range(night.runs):
        own = tasks[number :: night.runs]
        busy = 15 + max(makespan(own, cores), sum(own) / cores + 35)
        dollars += max(busy, 60) / 3600 * night.workers * HOUR_OF_WORKER[engine]
        lived = START[engine] + busy
        heapq.heapreplace(places, places[0] + lived + (30 if lived <= 600 else 150))
    return dollars, max(places)


def other_dollars(day: Day, manifests: int) -> float:
    stored = sum(size * n for sizes in (day.plain, day.gzip) for size, n in sizes.items())
    inflated = stored + 7 * sum(size * n for size, n in day.gzip.items())
    objects = max(manifests, inflated * 0.2 / OBJECT)
    minutes = 24 * 60
    invocations = minutes * max(5, math.ceil(day.files / minutes / 1000))
    of_invocation = 2 * 5e-6 + 0.4e-6 + 7 * 0.625e-6 + 3 * 0.125e-6 + 0.4 * 0.0000133334
    of_manifest = 4 * 5e-6 + 5 * 0.4e-6 + 21 * 0.625e-6 + 12 * 0.125e-6 + 1e-6 + 0.1 * 0.0000133334
    return (
        day.files * (0.4e-6 + 1.2 * 0.4e-6 + 0.625e-6 + 0.005 * 0.0000133334)
        + stored / RANGE * 0.4e-6
        + invocations * of_invocation
        + manifests * of_manifest
        + objects * (3 * 5e-6 + 0.4e-6)
    )


@pytest.mark.parametrize("day", DAYS.values(), ids=DAYS)
def test_a_night_costs_and_takes_what_an_own_calculation_says(day: Day) -> None:
    # Given what the plan has decided
    of = world.settings(input={"event_window_seconds": 60}, batch={"engines": [day.engine]})
    (all_batch,) = (option for option in routing_options(of, 1.0) if option.name == ALL_BATCH)
    option = simulate_option(world.arrivals(day.profile(), of), all_batch)
    night = option.night
    assert night
    # When
    dollars, seconds = night_of(day.tasks(night.manifests), day.engine, night)
    other = other_dollars(day, night.manifests)
    # Then
    assert option.dollars.total == pytest.approx(dollars + other, rel=0.03)
    assert option.dollars.other == pytest.approx(other, rel=0.03, abs=0.01)
    start, end = (datetime.fromisoformat(instant) for instant in (night.forecast.start, night.forecast.end))
    assert (end - start).total_seconds() == pytest.approx(seconds, rel=0.03)
