"""Arrivals to manifests: by the product's decision and cut, every file once."""

from datetime import datetime, timedelta
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lake.ledger import DatasetSpeed
from lake.manifest import Lane
from lake.settings import PriceSettings
from sizing.arrivals import FileGroup
from sizing.assumptions import POLLERS, ROUTE_SECONDS, Speed
from sizing.options import ALL_BATCH, routing_options
from sizing.routing import MAX_ARRIVALS, Router, invocations
from tests.unit.sizing.world import MB, NIGHT, routed, settings

DAY = datetime.fromisoformat("2026-11-18T10:00:00+00:00")
EARLY = datetime.fromisoformat("2026-11-18T05:00:00+00:00")


def test_peak_files_that_the_stream_has_no_room_for_go_to_the_batch_lane_and_are_counted() -> None:
    of = settings()
    router = Router(of, Speed.of(of, 8.0), NIGHT)
    groups = [FileGroup("a/file.json", MB, 10), FileGroup("a/urgent/file.json", MB, 2)]
    window = (14 * 3600) // 20
    found = router.route(window, groups, 3.5 / 40)
    assert sum(manifest.row.files for manifest in found if manifest.row.lane == Lane.BATCH) == 7
    assert router.spilled_files == 7


def test_files_that_no_rule_takes_are_counted() -> None:
    of = settings()
    router = Router(of, Speed.of(of, 8.0), NIGHT)
    assert router.route(0, [FileGroup("a/picture.png", MB, 7)]) == []
    assert router.ignored_files == 7


def test_manifests_keep_their_limits() -> None:
    of = settings(stream={"manifest_bytes": 10 * MB}, urgent={"keys": ["a/*"]})
    found = routed(of, [FileGroup("a/file.json", 4 * MB, 40)], EARLY)
    assert sum(manifest.row.bytes for manifest in found) == 160 * MB
    assert max(manifest.row.bytes for manifest in found) <= 10 * MB


def test_a_compressed_file_is_one_task_and_its_bytes_are_inflated() -> None:
    of = settings(batch={"manifest_bytes": 10**12})
    (plain,) = routed(of, [FileGroup("a/file.json", 40_000 * MB, 1)], EARLY)
    (compressed,) = routed(of, [FileGroup("a/file.json.gz", 5_000 * MB, 1)], EARLY)
    assert plain.work.core_seconds == 1000
    assert compressed.work.tasks == 1
    assert compressed.work.core_seconds == compressed.work.longest_seconds == pytest.approx(40_000 / 126)
    assert plain.work.tasks > 50


def test_a_measured_speed_of_compressed_files_takes_the_place_of_the_default() -> None:
    of = settings(price={"compressed_mb_per_second_per_core": 10}, batch={"manifest_bytes": 10**12})
    (compressed,) = routed(of, [FileGroup("a/file.json.gz", 5_000 * MB, 1)], EARLY)
    assert compressed.work.core_seconds == pytest.approx(500)
    assert Speed.of(settings(), 8.0).gzip == PriceSettings().compressed_mb_per_second_per_core * MB


def test_what_a_dataset_has_measured_takes_the_place_of_the_settings() -> None:
    # Given a dataset that has measured compressed files only
    of = settings(batch={"manifest_bytes": 10**12})
    speed = Speed.of(of, 8.0, {"a": DatasetSpeed(None, 2 * MB)})
    groups = [FileGroup(f"{dataset}/file.json{suffix}", 400 * MB, 1) for dataset in "ab" for suffix in ("", ".BZ2")]
    # When
    found = Router(of, speed, NIGHT).route(0, groups)
    # Then
    seconds = {
        name: sum(item.work.core_seconds for item in found if item.row.partition.dataset == name) for name in "ab"
    }
    plain, compressed = 400 * MB / speed.plain, 400 * MB / speed.gzip
    assert seconds == {"a": pytest.approx(plain + 200), "b": pytest.approx(plain + compressed)}
    assert sum(item.row.compressed_bytes for item in found) == 800 * MB


@given(st.lists(st.integers(1, 3000), max_size=5))
def test_every_event_is_in_one_invocation(counts: list[int]) -> None:
    events = invocations([(number, count) for number, count in enumerate(counts)])
    assert sorted(event for found in events for event in found) == [
        number for number, count in enumerate(counts) for _ in range(count)
    ]
    sizes = [len(found) for found in events]
    assert max(sizes, default=0) - min(sizes, default=0) <= 1
    assert max(sizes, default=0) <= MAX_ARRIVALS
    assert len(events) >= min(POLLERS, sum(counts))


def test_the_pollers_of_a_window_end_theirs_one_after_the_other() -> None:
    # Given windows of 20 s
    found = routed(settings(), [FileGroup("a/file.json", MB, 50)], DAY)
    # Then the manifests are queued evenly over one window, and each of them waits equally long
    queued = sorted(manifest.queued for manifest in found)
    steps = [later - sooner for sooner, later in pairwise(queued)]
    assert steps == pytest.approx([20 / POLLERS] * (POLLERS - 1))
    assert {round(manifest.queued - manifest.arrived, 6) for manifest in found} == {10 + ROUTE_SECONDS}


def test_windows_do_not_keep_step_with_triggers() -> None:
    # Given one file in each of many windows, and triggers every 20 s as well
    at = [routed(settings(), [FileGroup("a/file.json", MB, 1)], DAY + timedelta(seconds=20 * n)) for n in range(40)]
    # Then their waits for the trigger are spread over the whole interval
    waits = sorted(-manifest.queued % 20 for (manifest,) in at)
    assert waits == pytest.approx([20 * (n + 0.5) / 40 for n in range(40)], abs=1)


def test_a_file_above_the_stream_s_limit_waits_for_the_night_and_the_others_do_not() -> None:
    of = settings(stream={"latency_goal_seconds": 1, "max_workers": 2}, price={"mb_per_second_per_core": 1.25})
    found = routed(of, [FileGroup("a/file.json", size * MB, 1) for size in (4, 6, 5, 7)], DAY)
    by_lane = {lane: sum(item.row.bytes for item in found if item.row.lane == lane) for lane in Lane}
    assert by_lane == {Lane.STREAM: 9 * MB, Lane.BATCH: 13 * MB}


def test_small_files_of_a_dataset_can_be_urgent() -> None:
    rules = [{"name": "a", "prefix": "a/", "urgent": {"max_bytes": 5 * MB}}, {"name": "{folder}"}]
    groups = [FileGroup(f"{dataset}/file.json", size * MB, 1) for dataset in "ab" for size in (4, 6, 5)]
    found = routed(settings(datasets=rules), groups, EARLY)
    by_lane = {lane: sum(item.row.bytes for item in found if item.row.lane == lane) for lane in Lane}
    assert by_lane == {Lane.STREAM: 9 * MB, Lane.BATCH: 21 * MB}


def test_all_batch_has_no_urgent_files() -> None:
    of = settings(datasets=[{"name": "a", "prefix": "a/", "urgent": {"max_bytes": 5 * MB}}, {"name": "{folder}"}])
    (option,) = (option for option in routing_options(of, 1.0) if option.name == ALL_BATCH)
    assert [manifest.row.lane for manifest in routed(option.settings, [FileGroup("a/file.json", 1, 1)], DAY)] == [
        Lane.BATCH
    ]
    assert option.changes == ("peak.hours = []", "urgent.keys = []", "no datasets.urgent")
