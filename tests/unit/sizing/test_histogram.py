"""Latencies of files that arrive all through a window."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sizing.result import Latencies


def counted(*latencies: tuple[float, int, float]) -> Latencies:
    found = Latencies()
    for seconds, files, spread in latencies:
        found.add(seconds, files, spread)
    return found


def test_there_is_no_percentile_without_files() -> None:
    assert counted().percentile(0.5) is None


def test_a_latency_that_is_known_is_counted_by_tenths_of_a_second() -> None:
    found = counted((12.34, 3, 0), (50.06, 1, 0))
    assert [found.percentile(share) for share in (0.75, 0.76, 1)] == [12.3, 50.1, 50.1]


def test_files_of_a_window_have_latencies_from_its_end_to_its_begin() -> None:
    found = counted((30.0, 1000, 20))
    assert [found.percentile(share) for share in (0.05, 0.5, 1)] == [20.5, 29.5, 39.5]


@given(st.lists(st.tuples(st.floats(20, 9e4), st.integers(1, 10**6), st.integers(0, 40)), min_size=1, max_size=30))
def test_all_files_have_a_latency_within_their_limits(latencies: list[tuple[float, int, float]]) -> None:
    found = counted(*latencies)
    assert found.files == sum(files for _, files, _ in latencies)
    percentiles = [found.percentile(share) for share in (0, 0.5, 0.95, 1)]
    assert percentiles == sorted(percentiles, key=lambda seconds: seconds or 0)
    assert percentiles[0] == pytest.approx(min(s - max(w - 1, 0) / 2 for s, _, w in latencies), abs=0.051)
    assert percentiles[-1] == pytest.approx(max(s + max(w - 1, 0) / 2 for s, _, w in latencies), abs=0.051)
