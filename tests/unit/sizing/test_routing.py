"""Arrivals to manifests: by the product's decision and division, every file once."""

from datetime import datetime, timedelta
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lake.settings import Settings
from sizing.arrivals import FileGroup
from sizing.options import ALL_BATCH, routing_options
from sizing.routing import POLLERS, ROUTE_SECONDS, divide_events
from tests.unit.sizing.world import MB, routed, router, settings, window_of

DAY = datetime.fromisoformat("2026-11-18T10:00:00+00:00")
EARLY = datetime.fromisoformat("2026-11-18T05:00:00+00:00")


def bytes_by_lane(of: Settings, groups: list[FileGroup], at: datetime) -> tuple[int, int]:
    """Bytes of the stream lane, and of the batch lane."""
    found = router(of)
    stream = found.route(window_of(of, at), groups)
    batch = [item.group for waiting in found.collected.values() for item in waiting]
    return sum(item.row.bytes for item in stream), sum(group.bytes * group.count for group in batch)


def test_peak_files_that_the_stream_has_no_room_for_go_to_the_batch_lane_and_are_counted() -> None:
    of = settings()
    found = router(of)
    groups = [FileGroup("a/file.json", MB, 10), FileGroup("a/urgent/file.json", MB, 2)]
    stream = found.route((14 * 3600) // 20, groups, 3.5 / 40)
    assert sum(manifest.row.files for manifest in stream) == 5
    assert [item.group.count for waiting in found.collected.values() for item in waiting] == [7]
    assert found.spilled_files == 7


def test_files_that_no_rule_takes_are_counted() -> None:
    found = router(settings())
    assert found.route(0, [FileGroup("a/picture.png", MB, 7)]) == []
    assert found.ignored_files == 7


def test_a_compressed_file_is_one_task() -> None:
    of = settings(urgent={"keys": ["*"]}, stream={"manifest_bytes": 5_000 * MB, "latency_goal_seconds": 900})
    (plain,) = routed(of, [FileGroup("a/file.json", 5_000 * MB, 1)], EARLY)
    (compressed,) = routed(of, [FileGroup("a/file.json.gz", 5_000 * MB, 1)], EARLY)
    assert (plain.work.core_seconds, compressed.work.tasks) == (125, 1)
    assert compressed.work.core_seconds == compressed.work.longest_seconds == pytest.approx(40_000 / 126)
    assert plain.work.tasks > 5


@given(st.lists(st.integers(1, 3000), max_size=5), st.integers(1, 20))
def test_every_event_is_in_one_invocation(counts: list[int], pollers: int) -> None:
    events = divide_events([(number, count) for number, count in enumerate(counts)], pollers)
    assert sorted(event for found in events for event in found) == [
        number for number, count in enumerate(counts) for _ in range(count)
    ]
    sizes = [len(found) for found in events]
    assert max(sizes) - min(sizes) <= 1


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


RULES = [{"name": "a", "prefix": "a/", "urgent": {"max_bytes": 5 * MB}}, {"name": "{folder}"}]
SLOW = {"stream": {"latency_goal_seconds": 1, "max_workers": 2}, "price": {"mb_per_second_per_core": 1.25}}


@pytest.mark.parametrize(
    ("groups", "keys", "at", "expected"),
    [(SLOW, "a", DAY, (9, 13)), ({"datasets": RULES}, "ab", EARLY, (9, 35))],
    ids=["above the stream's limit a file waits for the night", "small files of a dataset can be urgent"],
)
def test_the_size_of_a_file_decides(groups: dict, keys: str, at: datetime, expected: tuple[int, int]) -> None:
    files = [FileGroup(f"{dataset}/file.json", size * MB, 1) for dataset in keys for size in (4, 6, 5, 7)]
    assert bytes_by_lane(settings(**groups), files, at) == (expected[0] * MB, expected[1] * MB)


def test_all_batch_has_no_urgent_files() -> None:
    of = settings(datasets=RULES)
    (option,) = (option for option in routing_options(of, 1.0) if option.name == ALL_BATCH)
    assert bytes_by_lane(option.settings, [FileGroup("a/file.json", 1, 1)], DAY) == (0, 1)
    assert option.changes == ("peak.hours = []", "urgent.keys = []", "no datasets.urgent")
