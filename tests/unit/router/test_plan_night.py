"""plan: the engine, the number of runs, the content of each run, and the forecast; pure."""

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lake.engines import Engine
from lake.ledger import DatasetSpeed, ManifestRow, State
from lake.manifest import Lane, Partition
from lake.settings import BatchSettings, PriceSettings, parse_settings
from lake.settings.lanes import RUN_FILES, RUN_MANIFESTS
from lake.speed import Speeds
from lake.time import next_local_time
from router.estimate.night import TAIL_OF_LONGEST, TAIL_SECONDS, RunWork, offers, run_seconds
from router.plan.glue_room import configured_room
from router.plan.night import MAX_TRIES, PlannedNight, PlannedRun, pack_evenly, pack_oldest_first, plan_night
from tests.unit.lake.world import PARTITION
from tests.unit.router.planning import HOURS

START = datetime(2026, 11, 20, 21, tzinfo=UTC)
GB = 10**9


def manifest(number: int, size: int, files: int = 1, partition: Partition = PARTITION) -> ManifestRow:
    name = f"{24 - partition.hour:02}-{number:05}"
    return ManifestRow(name, State.QUEUED, Lane.BATCH, partition, "", size, files)


def manifests(count: int, size: int, partition: Partition = PARTITION) -> list[ManifestRow]:
    return [manifest(number, size, 15, partition) for number in range(count)]


def planned(
    rows: list[ManifestRow], hours: float = 8, measured: DatasetSpeed | None = None, **settings: Any
) -> PlannedNight:
    parsed = parse_settings({"stage": "t", **settings})
    speeds = Speeds({PARTITION.dataset: measured} if measured else {}, parsed)
    return plan_night(rows, parsed, speeds, configured_room(parsed), START, START + timedelta(hours=hours))


def test_the_largest_day_ends_within_eight_hours_on_a_default_account() -> None:
    # Given 338,000 files of 4.5 GB, 15 of which are a manifest, and 500 DPU minus the stream's reserve
    night = planned(manifests(22_533, 67 * GB))
    # Then
    assert night.forecast.fits
    assert night.forecast.minutes < 480
    assert night.night.concurrency * night.night.workers <= 490


def test_a_night_that_cannot_fit_reports_its_delay_and_starts_with_the_oldest_hours() -> None:
    rows = [row for hour in (9, 8) for row in manifests(11_000, 67 * GB, Partition("orders", "2026-11-20", hour))]
    night = planned(rows, 2)
    assert not night.forecast.fits
    assert night.forecast.late_minutes == pytest.approx(night.forecast.minutes - 120, abs=0.2)
    hours = [row.partition.hour for run in night.runs for row in run.manifests]
    assert hours == sorted(hours)


def test_the_oldest_hours_come_first_too_if_only_the_packed_runs_are_late() -> None:
    # Given room for two runs, and three manifests of 35 minutes: in equal shares, they would end before the deadline
    rows = [manifest(hour, 50_000 * GB, 1, Partition("orders", "2026-11-20", hour)) for hour in (2, 1, 0)]
    batch = {"engines": ["glue"], "workers": 150, "run_bytes": 1 << 50}
    night = planned(rows, 1.1, batch=batch, quota={"dpus": 310})
    assert night.forecast.late_minutes > 0
    hours = [row.partition.hour for run in night.runs for row in run.manifests]
    assert hours == sorted(hours)


def test_the_cheapest_engine_that_ends_in_time_is_chosen() -> None:
    # Given: all engines, and spare capacity that is cheap and starts late
    engines = {"engines": ["glue-flex", "glue", "emr-serverless"]}
    price = {"dpu_hour_flex": 0.1, "dpu_hour": 0.3, "emr_vcpu_hour": 1.0}
    rows = manifests(100, 10 * GB)
    # When, Then
    assert planned(rows, batch=engines, price=price).night.engine is Engine.GLUE_FLEX
    in_a_hurry = planned(rows, 0.25, batch=engines, price=price)
    assert in_a_hurry.night.engine is Engine.GLUE
    options = in_a_hurry.forecast.options
    assert {option.engine for option in options} == set(engines["engines"])
    assert planned(rows, 0.25, price=price).night.engine is Engine.GLUE_FLEX
    assert [option.dollars for option in options] == sorted(option.dollars for option in options)


@pytest.mark.parametrize(
    ("engines", "dpus", "fallback"),
    [
        (["glue-flex", "glue"], 20, Engine.GLUE),
        (["glue", "emr-serverless"], 20, Engine.EMR_SERVERLESS),
        (["emr-serverless", "glue"], 5000, Engine.GLUE),
        (["emr-serverless", "glue"], 20, None),
    ],
    ids=["the same quota", "runs wait for room", "room for all", "no room for them"],
)
def test_a_run_continues_only_where_the_runs_of_its_night_have_room_or_can_wait_for_it(
    engines: list[str], dpus: int, fallback: Engine | None
) -> None:
    # Given the first engine as the cheapest
    price = {"dpu_hour_flex": 0.1, "dpu_hour": 0.2, "emr_vcpu_hour": 0.1 if engines[0] == "glue" else 0.001}
    batch = {"engines": engines, "workers": 10}
    night = planned(manifests(100, 10 * GB), 1, batch=batch, price=price, quota={"dpus": dpus})
    assert (night.night.engine, night.fallback) == (engines[0], fallback)


@pytest.mark.parametrize(
    ("sizes", "hours"),
    [([5000], 8), ([5000, 5000], 0.5), ([5000, 1000, 1000, 1000], 0.5)],
    ids=["more than a run's limit", "all large", "one large"],
)
def test_a_manifest_that_takes_long_is_in_one_run(sizes: list[int], hours: float) -> None:
    # Given plain files of 5 TB, each in its own manifest: 58 minutes of a run's 36 vCPUs
    rows = [manifest(number, size * GB) for number, size in enumerate(sizes)]
    # When
    night = planned(rows, hours, batch={"engines": ["glue"]})
    # Then the workers of a run are enough, and the plan is the best option
    (best,) = [option for option in night.forecast.options if option.engine == night.night.engine]
    assert night.forecast.fits
    assert (best.runs, round(best.seconds / 60, 1)) == (len(night.runs), night.forecast.minutes)


@pytest.mark.parametrize(
    ("others", "dpus", "fallback", "is_moved"),
    [
        (["emr-serverless"], 500, Engine.EMR_SERVERLESS, False),
        (["emr-serverless"], 110, Engine.EMR_SERVERLESS, True),
        (["emr-serverless", "glue"], 500, Engine.GLUE, True),
    ],
    ids=["a queue", "room", "room elsewhere, for more dollars"],
)
def test_a_late_run_does_not_move_to_an_engine_where_it_would_wait(
    others: list[str], dpus: int, fallback: Engine, is_moved: bool
) -> None:
    # Given an application of 400 vCPUs, which are 100 workers, and a night of up to 490 or of 100 workers on Flex
    batch, price = {"engines": ["glue-flex", *others]}, {"emr_vcpu_hour": 1.0, "dpu_hour": 9.0}
    night = planned(manifests(2000, 67 * GB), batch=batch, price=price, quota={"dpus": dpus})
    assert (night.night.engine, night.fallback) == (Engine.GLUE_FLEX, fallback)
    assert (night.night.concurrency * night.night.workers <= 100) is (dpus == 110)
    # Then a run has a latest start only if it can continue on the other engine without waiting for capacity
    assert {begin_by < START + timedelta(hours=8) for begin_by in night.begin_by} == {is_moved}


def test_a_run_of_compressed_files_takes_no_longer_than_an_hour_of_work() -> None:
    # Given 2 TB of files that convert at 5 MB/s of stored bytes: an hour of a run's 36 vCPUs is 648 GB
    night = planned(manifests(200, 10 * GB), 60, DatasetSpeed(5e6, None))
    assert max(run.bytes for run in night.runs) <= 648 * GB


# The first compressed files of a dataset are not expected to be as fast as its plain ones were.
@pytest.mark.parametrize(("compressed", "seconds"), [(10e6, 400), (None, 200)])
def test_a_manifest_of_both_kinds_takes_the_time_of_each(compressed: float | None, seconds: float) -> None:
    (row,) = manifests(1, 10 * GB)
    settings = parse_settings({"stage": "t", "price": {"compressed_mb_per_second_per_core": 20}})
    speeds = Speeds({PARTITION.dataset: DatasetSpeed(100e6, compressed)}, settings)
    assert speeds.core_seconds(replace(row, compressed_bytes=4 * GB)) == pytest.approx(60 + seconds)


@pytest.mark.parametrize(
    ("speed", "compressed", "measured"),
    [(DatasetSpeed(1.0, None), 0, True), (DatasetSpeed(1.0, None), 5, False), (DatasetSpeed(None, 1.0), 10, True)],
)
def test_a_speed_counts_as_measured_if_every_kind_of_file_was_measured(
    speed: DatasetSpeed, compressed: int, measured: bool
) -> None:
    (row,) = manifests(1, 10)
    speeds = Speeds({PARTITION.dataset: speed}, parse_settings({"stage": "t"}))
    assert speeds.is_measured(replace(row, compressed_bytes=compressed)) is measured


def test_the_forecast_of_one_run() -> None:
    # Given: 9 workers of 4 vCPUs at 10 MB/s are 360 MB/s; an hour of work in one run
    night = planned(manifests(1, 3600 * 360_000_000), measured=DatasetSpeed(10e6, None), quota={"dpus": 29})
    # Then: 5 minutes of waiting for capacity,
    # 60 s of start, half of the ramp (15 s), the tail (35 s), half of the interval of .sync (150 s)
    assert night.forecast.minutes == round((3600 + 300 + 60 + 15 + 35 + 150) / 60, 1)
    assert night.forecast.dollars == round((3600 + 15 + 35) / 3600 * 10 * PriceSettings().dpu_hour_flex, 6)
    assert night.forecast.deadline == "2026-11-21T05:00:00.000+00:00"


@pytest.mark.parametrize(
    ("hours", "engines", "engine"),
    [
        # An hour and a half on Flex: its margin and one futile wait of 20 minutes leave it time
        (2.5, ["glue-flex", "glue"], Engine.GLUE_FLEX),
        # The wait would take too long: only another engine is sure to meet the deadline
        (1.9, ["glue-flex", "glue"], Engine.GLUE),
        # No other engine exists
        (1.9, ["glue-flex"], Engine.GLUE_FLEX),
    ],
)
def test_flex_is_chosen_if_the_night_still_ends_in_time_after_flex_has_failed(
    hours: float, engines: list[str], engine: Engine
) -> None:
    quota = {"dpus": 20, "job_runs": 2}
    night = planned(manifests(1, 5400 * 36 * 40_000_000), hours, batch={"engines": engines}, quota=quota)
    assert (night.night.engine, night.forecast.fits) == (engine, True)


def test_a_run_has_no_more_workers_than_glue_gives_one() -> None:
    # Given: no time, and room for a run of four times the workers
    night = planned(manifests(40, 500 * GB), 0.2, batch={"workers": 100, "max_runs": 1}, quota={"dpus": 1000})
    # Then
    assert night.night.workers <= 299
    assert {option.workers for option in night.forecast.options} <= {100, 200}


def test_a_forecast_has_a_range_until_the_speed_is_measured() -> None:
    rows = manifests(22_533, 67 * GB)
    assumed = planned(rows).forecast
    assert assumed.dollars_low == pytest.approx(assumed.dollars / 2, rel=0.05)
    assert assumed.dollars_high == pytest.approx(assumed.dollars / 0.75, rel=0.05)
    assert assumed.minutes_low < assumed.minutes < assumed.minutes_high
    measured = planned(rows, measured=DatasetSpeed(40e6, None)).forecast
    assert (measured.dollars_low, measured.dollars_high) == (measured.dollars, measured.dollars)


def test_a_faster_network_lengthens_no_night() -> None:
    # Given compressed files, and plain ones for which the processor is assumed to be slower than their readers
    rows = [replace(row, compressed_bytes=row.bytes) for row in manifests(20, 67 * GB)]
    found = planned(rows, price={"mb_per_second_per_core": 5.0}).forecast
    assert found.minutes_low <= found.minutes <= found.minutes_high
    assert found.dollars_low <= found.dollars <= found.dollars_high


def test_a_forecast_counts_requests_and_storage_by_the_units_of_cost() -> None:
    # Given 338,000 files of 4.5 GB in 22,533 manifests
    found = planned(manifests(22_533, 67 * GB)).forecast
    # Then they are read in ranges of 8 MiB, written to objects of 128 MB, and kept at a fifth of their size
    ranges, objects = 22_533 * 67 * GB / (8 << 20), 22_533 * 67 * GB / 5 / (128 << 20)
    assert found.other_dollars == pytest.approx(ranges * 0.4e-6 + objects * (3 * 5e-6 + 0.4e-6), rel=0.05)
    assert found.storage_dollars_per_month == pytest.approx(22_533 * 67 * GB / 5 / 2**30 * 0.023, rel=0.001)


def test_a_run_of_large_compressed_files_has_a_longer_tail() -> None:
    # Given runs of the same work, one of which has files that take 400 seconds each
    offer = next(offers(parse_settings({"stage": "t"})))
    plain, compressed = (run_seconds(RunWork(1e6, longest), 100, offer) for longest in (0.0, 400.0))
    # Then its last file begins while other cores are already idle
    assert compressed - plain == pytest.approx(TAIL_OF_LONGEST * 400 - TAIL_SECONDS)
    # And all files of a manifest are assumed to have average size
    row = replace(manifests(1, 75 * GB)[0], compressed_bytes=40 * GB)
    price = {"mb_per_second_per_core": 40, "compressed_mb_per_second_per_core": 10}
    settings = parse_settings({"stage": "t", "price": price})
    assert Speeds({}, settings).longest_seconds(row) == pytest.approx(5 * GB / 10e6)


def test_a_file_of_concatenated_objects_is_one_task_whatever_its_name() -> None:
    # Given 15 files of 60 GB each
    row = manifests(1, 900 * GB)[0]
    # Then each takes one core of 40 MB/s for 25 minutes, while the others are idle
    settings = parse_settings({"stage": "t", "convert": {"concatenated": True}})
    speeds = Speeds({}, settings)
    assert speeds.longest_seconds(row) == pytest.approx(1500)
    assert speeds.busy_seconds(row, 60) == pytest.approx(15 * 60)
    # And the plan of the night reports it
    lines, objects = (planned([row], convert={"concatenated": value}).night.seconds for value in (False, True))
    assert objects > 1500 > lines


LARGE_LIMITS = parse_settings({"stage": "t", "batch": {"run_bytes": 512 * GB}}).batch


def seconds(row: ManifestRow) -> float:
    return row.bytes / GB


def test_runs_take_about_the_same_time() -> None:
    # Given manifests of 1 to 64 GB
    random = Random(1)
    backlog = [manifest(number, random.randint(1, 64) * GB) for number in range(2000)]
    # When
    runs = pack_evenly(backlog, LARGE_LIMITS, 150, seconds)
    # Then: no run is longer than the mean plus a tenth of the largest manifest
    lengths = [sum(map(seconds, run.manifests)) for run in runs]
    assert len(runs) == 150
    assert max(lengths) <= sum(lengths) / len(lengths) + 6.4


def test_a_dataset_that_is_converted_slowly_weighs_more_than_its_bytes() -> None:
    # Given: a manifest that takes as long as four others of its size
    backlog = [manifest(number, 10 * GB) for number in range(5)]
    # When
    runs = pack_evenly(backlog, LARGE_LIMITS, 2, lambda row: 4.0 if row.id == backlog[0].id else 1.0)
    # Then
    assert sorted(len(run.manifests) for run in runs) == [1, 4]


@pytest.mark.parametrize("files", [lambda random: 1, lambda random: random.randint(1, RUN_FILES)])
def test_the_work_for_a_manifest_does_not_grow_with_the_number_of_runs(files: Any) -> None:
    # Given: sizes between nothing and a whole run
    random = Random(1)
    backlog = [manifest(number, int(LARGE_LIMITS.run_bytes * random.random()), files(random)) for number in range(1500)]
    # When
    with patch.object(PlannedRun, "has_room", autospec=True, side_effect=PlannedRun.has_room) as has_room:
        runs = pack_evenly(backlog, LARGE_LIMITS, 1, seconds)
    # Then
    assert has_room.call_count <= len(backlog) * MAX_TRIES
    assert sum(len(run.manifests) for run in runs) == len(backlog)


Pack = Callable[[list[ManifestRow], BatchSettings, int, Callable[[ManifestRow], float]], list[PlannedRun]]
rows = st.lists(
    st.builds(
        manifest,
        st.integers(0, 9999),
        st.integers(0, 120),
        st.sampled_from([1, 12, 80_000, RUN_FILES + 1]),
        st.sampled_from(HOURS),
    ),
    unique_by=lambda row: row.id,
    max_size=60,
)
LIMITS = parse_settings(
    {
        "stage": "t",
        "batch": {"manifest_bytes": 100, "manifest_files": 20, "run_bytes": 300},
        "stream": {"manifest_bytes": 10, "manifest_files": 10},
    }
).batch


def by_size(row: ManifestRow) -> float:
    return row.bytes / 10


@pytest.mark.parametrize("pack", [pack_evenly, pack_oldest_first])
@given(backlog=rows, count=st.integers(1, 12))
def test_every_manifest_is_in_exactly_one_run(pack: Pack, backlog: list[ManifestRow], count: int) -> None:
    runs = pack(backlog, LIMITS, count, by_size)
    assert Counter(row.id for run in runs for row in run.manifests) == Counter(row.id for row in backlog)
    for run in runs:
        assert run.manifests
        assert len(run.manifests) == 1 or (run.bytes <= 300 and run.files <= RUN_FILES)


def test_a_run_has_a_limited_number_of_manifests() -> None:
    backlog = [manifest(number, 0) for number in range(RUN_MANIFESTS + 1)]
    assert sorted(len(run.manifests) for run in pack_evenly(backlog, LIMITS, 1, by_size)) == [1, RUN_MANIFESTS]


@pytest.mark.parametrize(
    ("now", "expected"),
    [
        ("2026-11-20T21:00", "2026-11-21T05:00"),
        ("2026-11-21T04:59", "2026-11-21T05:00"),
        ("2026-11-21T05:00", "2026-11-22T05:00"),
        ("2026-03-28T22:00", "2026-03-29T04:00"),
        ("2026-10-24T22:00", "2026-10-25T05:00"),
    ],
    ids=["this night", "in a minute", "just passed", "spring", "autumn"],
)
def test_the_deadline_is_the_next_one_by_the_local_clock(now: str, expected: str) -> None:
    instant = datetime.fromisoformat(now).replace(tzinfo=UTC)
    assert next_local_time("06:00", "Europe/Berlin", instant) == datetime.fromisoformat(expected).replace(tzinfo=UTC)
