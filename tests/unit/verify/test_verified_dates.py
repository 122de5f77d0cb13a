"""Which dates are verified, and how the work of a manifest is divided."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from batch_job.verify_dates import MAX_DUE_DATES, due_dates, last_settled_date
from verify.manifest_check import MAX_TASKS, group_by_size

THREE = ["2026-03-04", "2026-03-05", "2026-03-06"]


@pytest.mark.parametrize(
    ("now", "verified", "expected"),
    [
        # The 6th ended at midnight of the 7th: 36 hours later it is noon of the 8th.
        ("2026-03-08T12:00:00+00:00", [], THREE),
        ("2026-03-08T11:59:59+00:00", [], ["2026-03-03", "2026-03-04", "2026-03-05"]),
        ("2026-03-08T13:00:00+01:00", [], THREE),
        ("2026-03-08T12:00:00+00:00", ["2026-03-04", "2026-03-05"], ["2026-03-06"]),
        ("2026-03-08T12:00:00+00:00", ["2026-03-05", "2026-03-06-early"], ["2026-03-04", "2026-03-06"]),
        ("2026-03-08T12:00:00+00:00", THREE, []),
        ("2026-03-02T12:00:00+00:00", [], ["2026-02-26", "2026-02-27", "2026-02-28"]),
    ],
)
def test_dates_are_due_once_the_night_has_had_them(now: str, verified: list[str], expected: list[str]) -> None:
    assert due_dates(datetime.fromisoformat(now), verified) == expected


@given(st.datetimes(min_value=datetime(2026, 1, 1), max_value=datetime(2027, 1, 1), timezones=st.just(UTC)))
def test_daily_runs_at_any_time_leave_no_date_out(start: datetime) -> None:
    # Given a run each day, up to an hour late, and each date that it has compared has a document
    verified: set[str] = set()
    for day in range(10):
        verified.update(due_dates(start + timedelta(days=day, minutes=13 * day % 60), verified))
    # Then every date up to the last one is among them
    last = datetime.fromisoformat(last_settled_date(start + timedelta(days=9)))
    expected = {(last - timedelta(days=days)).strftime("%Y-%m-%d") for days in range(9 + MAX_DUE_DATES)}
    assert expected <= verified


@given(st.lists(st.integers(0, 10_000_000), max_size=300))
def test_the_parts_of_a_manifest_are_all_of_it_in_few_tasks(sizes: list[int]) -> None:
    parts = list(group_by_size(sizes))
    assert [size for part in parts for size in sizes[part]] == sizes
    assert len(parts) <= MAX_TASKS
    assert all(sizes[part] for part in parts)
    # No part but the last is smaller than its share, and none is more than one item larger.
    for part in parts:
        assert sum(sizes[part]) <= sum(sizes) / MAX_TASKS + max(sizes)
