"""Arrivals of a profile: every file once, when the curve says."""

from collections import Counter
from datetime import datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lake.errors import InvalidInputError
from sizing.arrivals import divide, windows_of_day
from tests.unit.sizing.world import arrivals, profile, settings


def files_by_hour(*, time_zone: str = "UTC", **fields: object) -> Counter[int]:
    of = settings(time_zone=time_zone)
    found = arrivals(profile(**fields), of)
    hours: Counter[int] = Counter()
    for number, groups in enumerate(found.windows()):
        hours[(number * of.input.event_window_seconds // 3600 + 22) % 24] += sum(group.count for group in groups)
    return hours


@pytest.mark.parametrize(
    ("files", "datasets", "urgent", "gzip"),
    [(1, 1, 0, 0), (1, 7, 0.5, 0.5), (4, 4, 0.3, 0.3), (5000, 3, 0.01, 1), (4999, 7, 1, 0.1), (12345, 1, 0.999, 0.001)],
)
def test_every_file_arrives_once(files: int, datasets: int, urgent: float, gzip: float) -> None:
    found = arrivals(
        profile(
            files=files,
            datasets=datasets,
            urgent_share=urgent,
            gzip_share=gzip,
            sizes=[{"bytes": 1}, {"bytes": 2, "share": 2}],
        ),
        settings(),
    )
    windows = list(found.windows())
    assert len(windows) == windows_of_day(settings())
    assert sum(group.count for groups in windows for group in groups) == files
    assert all(group.count > 0 for groups in windows for group in groups)


def test_files_arrive_in_the_hours_of_the_curve() -> None:
    hours = files_by_hour(files=1000, curve=[0] * 8 + [1] * 8 + [3] * 4 + [0] * 4)
    assert [hours[hour] for hour in (7, 8, 15, 16, 19, 20)] == pytest.approx([0, 50, 50, 150, 150, 0], abs=1)


def test_the_curve_is_that_of_the_local_time() -> None:
    hours = files_by_hour(files=1000, curve=[0] * 9 + [1] + [0] * 14, time_zone="Europe/Berlin")
    assert hours == {**dict.fromkeys(range(24), 0), 9: 1000}


def test_a_curve_without_an_hour_that_exists_is_refused() -> None:
    # Given the day on which the clock goes from 02:00 to 03:00
    with pytest.raises(InvalidInputError, match="2026-03-29 in Europe/Berlin"):
        files_by_hour(curve=[0, 0, 1] + [0] * 21, date="2026-03-29", time_zone="Europe/Berlin")


def test_the_day_of_a_change_of_the_clock_has_24_hours() -> None:
    of = settings(time_zone="Europe/Berlin")
    found = arrivals(profile(date="2026-03-29"), of)
    assert found.night == datetime.fromisoformat("2026-03-29T22:00:00+02:00")
    assert sum(group.count for groups in found.windows() for group in groups) == 1000


@given(st.integers(0, 10_000), st.lists(st.floats(0.001, 100), min_size=1, max_size=20))
def test_numbers_in_proportion_add_up(total: int, shares: list[float]) -> None:
    counts = divide(total, shares)
    assert sum(counts) == total
    assert all(abs(count - total * share / sum(shares)) < 1 + 1e-6 for count, share in zip(counts, shares, strict=True))


@pytest.mark.parametrize(
    ("fields", "groups", "message"),
    [
        ({"datasets": 2}, {"datasets": [{"name": "orders"}]}, "the settings name 1"),
        ({"urgent_share": 0.1}, {"urgent": {"keys": []}}, "set urgent.keys"),
        ({}, {"urgent": {"keys": ["*"]}}, "pass settings whose rules do"),
    ],
)
def test_a_profile_that_the_rules_cannot_give_is_refused(fields: dict, groups: dict, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        arrivals(profile(**fields), settings(**groups))
