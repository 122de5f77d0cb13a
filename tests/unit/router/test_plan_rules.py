"""plan: packing, groups to merge, forecast and deadline; pure."""

from collections import Counter
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lake.engines import Engine
from lake.ledger import ManifestRow, State
from lake.manifest import Lane
from lake.settings import parse_settings
from lake.time import next_local_time
from router.plan.forecast import forecast
from router.plan.merge import MAX_SOURCES, mergeable_groups
from router.plan.pack import PlannedRun, pack_runs
from tests.unit.lake.world import PARTITION
from tests.unit.router.planning import HOURS

rows = st.lists(
    st.builds(
        lambda number, size, files, hour, attempt: ManifestRow(
            f"m{number}", State.QUEUED, Lane.BATCH, hour, f"2026-11-20T{number:04d}", size, files, attempt=attempt
        ),
        st.integers(0, 9999),
        st.integers(0, 120),
        st.integers(1, 12),
        st.sampled_from(HOURS),
        st.sampled_from([0, 0, 0, 1]),
    ),
    unique_by=lambda row: row.id,
    max_size=60,
)
LIMITS = parse_settings(
    {
        "stage": "t",
        "batch": {"manifest_bytes": 100, "manifest_files": 20, "run_bytes": 300, "run_manifests": 4, "run_files": 30},
        "stream": {"manifest_bytes": 10, "manifest_files": 10},
    }
).batch


@given(rows)
def test_every_manifest_is_in_exactly_one_run(backlog: list[ManifestRow]) -> None:
    runs = pack_runs(backlog, LIMITS)
    assert Counter(row.id for run in runs for row in run.manifests) == Counter(row.id for row in backlog)
    for run in runs:
        assert run.manifests
        assert len(run.manifests) == 1 or (run.bytes <= 300 and len(run.manifests) <= 4 and run.files <= 30)


def test_small_files_fill_a_run_by_their_number() -> None:
    # Given: manifests of many empty files, and one that has more files than a run may have
    backlog = [
        ManifestRow(f"m{number}", State.QUEUED, Lane.BATCH, PARTITION, f"{number:04d}", 0, files)
        for number, files in enumerate([12, 12, 12, 40])
    ]
    # When, Then: the large one has a run of its own
    assert sorted(run.files for run in pack_runs(backlog, LIMITS)) == [12, 24, 40]


@given(rows)
def test_groups_have_one_hour_keep_the_limits_and_hold_no_tried_manifest(backlog: list[ManifestRow]) -> None:
    found = mergeable_groups(backlog, LIMITS)
    members = [row for group in found for row in group]
    assert len({row.id for row in members}) == len(members)
    for group in found:
        assert 2 <= len(group) <= MAX_SOURCES
        assert len({row.partition for row in group}) == 1
        assert sum(row.bytes for row in group) <= 100
        assert sum(row.files for row in group) <= 20
        assert {row.attempt for row in group} == {0}


def test_a_group_fits_into_a_transaction() -> None:
    many = [
        ManifestRow(f"m{number}", State.QUEUED, Lane.BATCH, PARTITION, f"{number:04d}", 0, 0) for number in range(200)
    ]
    assert [len(group) for group in mergeable_groups(many, LIMITS)] == [90, 90, 20]


FRIDAY_EVENING = datetime(2026, 11, 20, 21, tzinfo=UTC)


def test_a_forecast_has_duration_cost_and_whether_it_meets_the_deadline() -> None:
    # Given: 9 workers of 4 vCPUs that convert 10 MB/s each: 360 MB/s; two runs one after the other
    settings = parse_settings(
        {"stage": "t", "time_zone": "Europe/Berlin", "batch": {"max_runs": 1}, "price": {"dpu_hour_flex": 0.29}}
    )
    size = 360_000_000 * 3600
    run = PlannedRun((ManifestRow("m", State.QUEUED, Lane.BATCH, PARTITION, "", size, 1),))
    # When
    expected = forecast([run, run], settings, {"orders": 10_000_000.0}, FRIDAY_EVENING, Engine.GLUE_FLEX)
    # Then: two hours and two starts; 2 h * 10 DPU * $0.29; the deadline is 06:00 in Berlin
    assert (expected.minutes, expected.dollars) == (122.0, 5.8)
    assert (expected.deadline, expected.fits) == ("2026-11-21T05:00+00:00", True)
    assert not forecast([run] * 8, settings, {"orders": 10_000_000.0}, FRIDAY_EVENING, Engine.GLUE_FLEX).fits
    assert forecast([run], settings, {}, FRIDAY_EVENING, Engine.GLUE_FLEX).minutes == 16.0


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
