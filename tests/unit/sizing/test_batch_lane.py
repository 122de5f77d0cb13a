"""The night in virtual time: divided and planned by the product's rules, and every file published once."""

from collections.abc import Sequence

import pytest

from lake.manifest import Partition
from lake.settings import Settings
from lake.speed import Speeds
from router.plan.night import PlannedNight
from sizing.arrivals import FileGroup
from sizing.batch_lane import BacklogItem, divide_collections, simulate_night
from sizing.result import Latencies
from sizing.routing import Collected
from tests.unit.sizing.world import MB, NIGHT, settings

GLUE = settings(batch={"engines": ["glue"]})


def backlog(*groups: FileGroup) -> list[BacklogItem]:
    """What each of the groups becomes that was received in one hour, one after the other."""
    collected = [Collected(group, 1000.0 + number) for number, group in enumerate(groups)]
    return divide_collections({Partition("orders", "2026-11-18", 5): collected}, GLUE.batch)


def planned(items: Sequence[BacklogItem], of: Settings = GLUE) -> tuple[PlannedNight, Latencies]:
    found = simulate_night(items, of, Speeds({}, of.price), NIGHT)
    assert found is not None
    return found


def test_an_hour_is_divided_by_the_limits_and_no_file_is_lost() -> None:
    limits = GLUE.batch
    found = backlog(*[FileGroup("orders/a.json", MB, 3)] * (2 * limits.manifest_files))
    assert [item.row.files for item in found] == [limits.manifest_files] * 6
    assert sum(files for item in found for _, files in item.arrived) == 6 * limits.manifest_files
    assert sum(item.row.bytes for item in found) == 6 * limits.manifest_files * MB


def test_a_manifest_has_at_most_the_bytes_of_the_settings() -> None:
    found = backlog(FileGroup("orders/a.json", GLUE.batch.manifest_bytes // 3, 8))
    assert [item.row.files for item in found] == [3, 3, 2]


def test_a_file_above_the_limit_is_a_manifest_of_its_own() -> None:
    found = backlog(FileGroup("orders/a.json", 2 * GLUE.batch.manifest_bytes, 2), FileGroup("orders/b.json", 1, 1))
    assert [item.row.files for item in found] == [1, 1, 1]


def test_the_datasets_that_one_stands_for_share_its_files() -> None:
    found = backlog(FileGroup("orders/a.json", 10, 100, 3), FileGroup("orders/a.json.gz", 1, 100, 3))
    assert [item.row.files for item in found] == [66, 67, 67]
    assert sum(item.row.bytes for item in found) == 1100
    assert sum(item.row.compressed_bytes for item in found) == 100
    assert sum(files for item in found for _, files in item.arrived) == pytest.approx(200)


def test_a_night_without_manifests_is_none() -> None:
    assert simulate_night([], GLUE, Speeds({}, GLUE.price), NIGHT) is None


def test_every_file_is_published_between_the_start_and_the_end() -> None:
    items = backlog(*[FileGroup("orders/a.json", 20_000 * MB, 1)] * 300)
    night, latencies = planned(items)
    first, last = (latencies.percentile(share) or 0 for share in (0.001, 1))
    assert latencies.files == pytest.approx(300)
    assert 85_000 < first < last < 86_400 + 60 * night.forecast.minutes - 999


def test_a_compressed_file_that_takes_long_makes_its_run_long() -> None:
    ends = []
    for name in ("a.json", "a.json.gz"):
        night, _ = planned(backlog(FileGroup(f"orders/{name}", 10_000 * MB, 10)))
        ends.append(night.forecast.minutes)
    assert ends[1] - ends[0] > 9
