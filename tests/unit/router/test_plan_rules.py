"""plan: packing and the deadline; pure."""

from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lake.ledger import ManifestRow, State
from lake.manifest import Lane
from lake.settings import BatchSettings, parse_settings
from lake.settings.lanes import RUN_FILES, RUN_MANIFESTS
from lake.time import next_local_time
from router.plan.night import PlannedRun, pack_evenly, pack_oldest_first
from tests.unit.lake.world import PARTITION
from tests.unit.router.planning import HOURS

Pack = Callable[[list[ManifestRow], BatchSettings, int, Callable[[ManifestRow], float]], list[PlannedRun]]


rows = st.lists(
    st.builds(
        lambda number, size, files, hour: ManifestRow(
            f"m{number}", State.QUEUED, Lane.BATCH, hour, f"2026-11-20T{number:04d}", size, files
        ),
        st.integers(0, 9999),
        st.integers(0, 120),
        st.integers(1, 12),
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
        assert len(run.manifests) == 1 or run.bytes <= 300


def test_small_files_fill_a_run_by_their_number() -> None:
    # Given: manifests of many empty files, and one that has more files than a run may have
    backlog = [
        ManifestRow(f"m{number}", State.QUEUED, Lane.BATCH, PARTITION, f"{number:04d}", 0, files)
        for number, files in enumerate([80_000, 80_000, 80_000, RUN_FILES + 1])
    ]
    # When, Then: the large one has a run of its own
    assert sorted(run.files for run in pack_evenly(backlog, LIMITS, 1, by_size)) == [80_000, 160_000, RUN_FILES + 1]


def test_a_run_has_a_limited_number_of_manifests() -> None:
    backlog = [
        ManifestRow(f"m{number}", State.QUEUED, Lane.BATCH, PARTITION, f"{number:04d}", 0, 1)
        for number in range(RUN_MANIFESTS + 1)
    ]
    assert sorted(len(run.manifests) for run in pack_evenly(backlog, LIMITS, 1, by_size)) == [1, RUN_MANIFESTS]


def test_runs_of_a_late_night_begin_with_the_oldest_hours() -> None:
    backlog = [
        ManifestRow(f"m{number}", State.QUEUED, Lane.BATCH, hour, "", 100 + number, 1)
        for number, hour in enumerate(reversed(HOURS * 3))
    ]
    runs = pack_oldest_first(backlog, LIMITS, 6, by_size)
    ages = [row.partition.stamp for run in runs for row in run.manifests]
    assert ages == sorted(ages)
    assert 4 <= len(runs) <= 6


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
