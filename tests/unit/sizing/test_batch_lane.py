"""The night in virtual time: divided and planned by the product, and calculated again without its code."""

import heapq
import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from random import Random

import pytest

from lake.manifest import Partition
from lake.settings import Settings
from lake.speed import Speeds
from router.plan.night import PlannedNight
from sizing.arrivals import FileGroup, Profile
from sizing.batch_lane import BacklogItem, divide_collections, simulate_night
from sizing.day import at_ratio, simulate_option
from sizing.options import all_batch
from sizing.result import Latencies, NightResult
from sizing.routing import Collected
from tests.unit.sizing import world
from tests.unit.sizing.world import MB, NIGHT, settings

GLUE = settings(batch={"engines": ["glue"]})


def backlog(*groups: FileGroup) -> list[BacklogItem]:
    """The manifests of each group that was received in one hour, one after the other."""
    collected = [Collected(group, 1000.0 + number) for number, group in enumerate(groups)]
    return divide_collections({Partition("orders", "2026-11-18", 5): collected}, GLUE.batch)


def planned(items: Sequence[BacklogItem], of: Settings = GLUE) -> tuple[PlannedNight, Latencies]:
    found = simulate_night(items, of, Speeds({}, of), NIGHT)
    assert found is not None
    return found


LIMITS = GLUE.batch


@pytest.mark.parametrize(
    ("groups", "files"),
    [
        ([FileGroup("orders/a.json", MB, 3)] * (2 * LIMITS.manifest_files), [LIMITS.manifest_files] * 6),
        ([FileGroup("orders/a.json", LIMITS.manifest_bytes // 3, 8)], [3, 3, 2]),
        ([FileGroup("orders/a.json", 2 * LIMITS.manifest_bytes, 2), FileGroup("orders/b.json", 1, 1)], [1, 1, 1]),
    ],
    ids=["files", "bytes", "a file above the limit"],
)
def test_an_hour_is_divided_by_the_limits_and_no_file_is_lost(groups: list[FileGroup], files: list[int]) -> None:
    found = backlog(*groups)
    assert [item.row.files for item in found] == files
    assert sum(count for item in found for count in item.arrived.values()) == sum(files)
    assert sum(item.row.bytes for item in found) == sum(group.bytes * group.count for group in groups)


def test_the_datasets_that_one_stands_for_share_its_files() -> None:
    found = backlog(FileGroup("orders/a.json", 10, 100, 3), FileGroup("orders/a.json.gz", 1, 100, 3))
    assert [item.row.files for item in found] == [66, 67, 67]
    assert sum(item.row.bytes for item in found) == 11 * sum(item.row.compressed_bytes for item in found) == 1100
    assert sum(files for item in found for files in item.arrived.values()) == pytest.approx(200)
    # 10,000 datasets with files in every window of an hour have 60 times each, not 720: seconds instead of minutes.
    assert [len(item.arrived) for item in backlog(*[FileGroup("orders/a.json", 10, 100, 3)] * 200)] == [4, 4, 4]


def test_every_file_is_published_between_the_start_and_the_end() -> None:
    items = backlog(*[FileGroup("orders/a.json", 20_000 * MB, 1)] * 300)
    night, latencies = planned(items)
    first, last = (latencies.percentile(share) or 0 for share in (0.001, 1))
    assert latencies.files == pytest.approx(300)
    assert 85_000 < first < last < 86_400 + 60 * night.forecast.minutes - 999


GB = 10**9
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
    ratio: int = 8
    datasets: int = 1

    def profile(self) -> Profile:
        sizes = {**self.plain, **self.gzip}
        shares = [{"bytes": size, "share": self.plain.get(size, 0) + self.gzip.get(size, 0)} for size in sizes]
        compressed = sum(self.gzip.values()) / self.files
        gzip = {"share": compressed, "ratio": self.ratio}
        return world.profile(files=self.files, datasets=self.datasets, gzip=gzip, sizes=shares)

    @property
    def files(self) -> int:
        return sum(self.plain.values()) + sum(self.gzip.values())

    def tasks(self, manifests: int) -> list[float]:
        """Seconds of a core for each task: compressed files one by one, plain input in parts of one output file."""
        seconds = [size / min(40 * MB, 126 * MB / self.ratio) for size, n in self.gzip.items() for _ in range(n)]
        for size, number in self.plain.items():
            whole = max(number * size / 40e6, number / 1350)
            parts = max(manifests, round(number * size * 0.2 / OBJECT))
            seconds += [whole / parts] * parts
        return seconds


DAYS = {
    "large": Day({4_500 * MB: 20_000}, {}, "glue-flex"),
    "small": Day({MB: 200_000}, {}, "glue", datasets=5),
    "gzip": Day({}, {size * GB: 1_500 for size in (3, 4, 5, 6)}, "emr-serverless", ratio=10, datasets=8),
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
    inflated = stored + (day.ratio - 1) * sum(size * n for size, n in day.gzip.items())
    objects = max(manifests, inflated * 0.2 / OBJECT)
    minutes = 24 * 60
    invocations = minutes * max(5, math.ceil(day.files / minutes / 1000))
    of_invocation = 2 * 5e-6 + 0.4e-6 + 7 * 0.625e-6 + 3 * 0.125e-6 + 0.4 * 0.0000133334
    of_manifest = 4 * 5e-6 + 5 * 0.4e-6 + 23 * 0.625e-6 + 74 * 0.125e-6 + 1e-6 + 0.1 * 0.0000133334
    return (
        day.files * (0.4e-6 + 1.2 * 0.4e-6 + 0.625e-6 + 0.008 * 0.0000133334 + 8 * 0.125e-6 + 0.016 * 5e-6)
        + stored / RANGE * 0.4e-6
        + invocations * of_invocation
        + manifests * of_manifest
        + objects * (3 * 5e-6 + 0.4e-6)
    )


@pytest.mark.parametrize("day", DAYS.values(), ids=DAYS)
def test_a_nights_cost_and_duration_match_an_independent_calculation(day: Day) -> None:
    # Given the decision of the plan
    of = world.settings(input={"event_window_seconds": 60}, batch={"engines": [day.engine]})
    profile = day.profile()
    option = simulate_option(world.arrivals(profile, of), all_batch(at_ratio(of, profile.gzip.ratio)))
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
