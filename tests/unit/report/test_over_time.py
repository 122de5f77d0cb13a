"""Latency and backlog over time: exact in small numbers, bounded in large ones."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from report.over_time import MAX_CHANGES, MAX_INTERVALS, BacklogOverTime, BacklogPoint, LatencyOverTime, percentiles


def test_percentiles_are_those_of_the_nearest_rank() -> None:
    # Given a hundred files of 1 to 100 seconds, When, Then
    found = percentiles({float(seconds): 1 for seconds in range(1, 101)})
    assert found is not None
    assert (found.files, found.p50, found.p90, found.p99, found.longest) == (100, 50, 90, 99, 100)
    assert percentiles({}) is None


@given(st.dictionaries(st.integers(0, 50).map(float), st.integers(1, 30), min_size=1))
def test_every_percentile_is_that_of_the_sorted_list(counts: dict[float, int]) -> None:
    found, every = percentiles(counts), sorted(Counter(counts).elements())
    assert found is not None
    for share, value in ((50, found.p50), (90, found.p90), (99, found.p99), (100, found.longest)):
        assert value == every[-(-len(every) * share // 100) - 1]


def test_latency_is_by_the_arrival() -> None:
    latency = LatencyOverTime()
    latency.add(1000.2, 5, 3)
    latency.add(1000.9, 7, 1)
    latency.add(1001.0, 9, 1)
    # Then each second is a point
    assert [(point.start, point.percentiles.files, point.percentiles.longest) for point in latency.points()] == [
        (1000, 4, 7),
        (1001, 1, 9),
    ]
    total = latency.total()
    assert total is not None
    assert (total.files, total.p50) == (5, 5)


@given(st.lists(st.tuples(st.integers(0, 10**6), st.integers(0, 10**5), st.integers(1, 9)), max_size=1000))
def test_no_file_is_lost_when_intervals_are_joined(files: list[tuple[int, int, int]]) -> None:
    latency, backlog = LatencyOverTime(), BacklogOverTime()
    for arrived, seconds, number in files:
        latency.add(arrived, seconds, number)
        backlog.add(arrived, number, 10 * number)
        backlog.add(arrived + seconds, -number, -10 * number)
    # Then all files are counted, in a bounded number of points, and nothing waits in the end
    assert sum(point.percentiles.files for point in latency.points()) == sum(number for *_, number in files)
    assert len(latency.points()) <= MAX_INTERVALS
    assert len(backlog.points()) <= MAX_CHANGES + 1
    assert all(point.files >= 0 and point.bytes == 10 * point.files for point in backlog.points())
    assert not files or backlog.points()[-1].files == 0


def test_the_backlog_is_what_came_and_has_not_gone() -> None:
    backlog = BacklogOverTime()
    backlog.add(10, 2, 200)
    backlog.add(12, -1, -100)
    assert backlog.points() == [BacklogPoint(10, 0, 0), BacklogPoint(11, 2, 200), BacklogPoint(13, 1, 100)]
    assert BacklogOverTime().points() == []
