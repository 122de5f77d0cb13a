"""The sums of manifests, in total and over time."""

from collections import Counter
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lake.ledger import CostShare, ManifestCounts, State
from lake.manifest import Lane, Partition
from report.figures import (
    MAX_CHANGES,
    MAX_INTERVALS,
    MAX_NAMED_MANIFESTS,
    OLD_AFTER,
    LaneFigures,
    ManifestFigures,
    arrival_of,
    cost_figures,
    percentiles,
)
from tests.unit.report.reporting import MORNING, cost_row, row


@given(st.dictionaries(st.integers(0, 50).map(float), st.integers(1, 30), min_size=1))
def test_every_percentile_matches_the_sorted_list(counts: dict[float, int]) -> None:
    found, every = percentiles(counts), sorted(Counter(counts).elements())
    assert found is not None
    for share, value in ((50, found.p50), (90, found.p90), (99, found.p99), (100, found.longest)):
        assert value == every[-(-len(every) * share // 100) - 1]


@given(st.lists(st.tuples(st.integers(0, 10**6), st.integers(0, 10**5), st.integers(1, 9)), max_size=1000))
def test_no_file_is_lost_when_intervals_are_joined(files: list[tuple[int, int, int]]) -> None:
    lane = LaneFigures()
    for arrived, seconds, number in files:
        lane.latency.add(arrived, {float(seconds): number})
        lane.backlog.add(arrived, {"files": number, "bytes": 10 * number})
        lane.backlog.add(arrived + seconds, {"files": -number, "bytes": -10 * number})
    # Then all files are counted, in a bounded number of points, and nothing waits at the end
    assert sum(found.files for _, found in lane.latencies()) == sum(number for *_, number in files)
    assert len(lane.latencies()) <= MAX_INTERVALS
    assert len(lane.backlogs()) <= MAX_CHANGES + 1
    assert all(number >= 0 and size == 10 * number for _, number, size in lane.backlogs())
    assert not files or lane.backlogs()[-1].files == 0


def test_manifests_are_counted_by_lane_dataset_and_reason() -> None:
    # Given
    figures = ManifestFigures(MORNING)
    figures.add(row("m1", rejects={"not JSON": 2}))
    figures.add(row("m2", Lane.STREAM, rejects={"not JSON": 1, "too long": 4}))
    figures.add(row("m3", state=State.FAILED, reason="why", partition=Partition("clicks", "2026-11-20", 9)))
    figures.add(row("m4", state=State.QUEUED))
    # When, Then
    total = figures.total
    assert (total.done, total.failed, total.open) == (2, 1, 1)
    assert (total.rows, dict(total.rejects), total.files, total.bytes) == (
        200,
        {"not JSON": 3, "too long": 4},
        40,
        4000,
    )
    assert figures.lanes[Lane.STREAM].counts.rejects.total() == 5
    assert figures.lanes[Lane.BATCH].counts.files == 30
    assert {name: counts.files for name, counts in figures.datasets.items()} == {"orders": 30, "clicks": 10}
    assert [(item.id, item.state, item.reason) for item in figures.unfinished] == [
        ("m3", "FAILED", "why"),
        ("m4", "QUEUED", None),
    ]


def test_a_row_that_is_not_a_result_counts_nothing() -> None:
    figures = ManifestFigures(MORNING)
    for state in (State.SUPERSEDED, State.ABANDONED):
        figures.add(row(state=state))
    assert figures.total == ManifestCounts()
    assert figures.lanes[Lane.BATCH].backlogs() == []


@pytest.mark.parametrize("state", [State.QUEUED, State.RUNNING, State.FAILED])
def test_what_is_published_counts_until_the_next_generation_is_done(state: State) -> None:
    # Given a published manifest whose second conversion waits, runs or has failed
    published = row(rejects={"not JSON": 3}).published
    figures = ManifestFigures(MORNING)
    figures.add(row(state=state, generation=2, published=published))
    # Then it counts as not done, with the rows and lines that are in lake and quarantine
    assert (figures.total.rows, figures.total.rejects.total(), figures.total.done) == (100, 3, 0)


def test_latency_and_backlog_match_the_files() -> None:
    figures = ManifestFigures(MORNING)
    figures.add(row(seconds=60))
    figures.add(row("later", seconds=30, made=MORNING + timedelta(seconds=30)))
    figures.add(row("waits", state=State.QUEUED))
    lane = figures.lanes[Lane.BATCH]
    latency = lane.total_latency()
    assert latency is not None
    assert (latency.files, latency.p50, latency.p99) == (20, 30, 60)
    points = [(start - MORNING.timestamp(), found.longest) for start, found in lane.latencies()]
    assert points == [(0, 60), (30, 30)]
    assert lane.backlogs()[-1] == (MORNING.timestamp() + 61, 10, 1000)


def test_what_is_old_or_converted_again_is_in_no_chart() -> None:
    figures = ManifestFigures(MORNING)
    figures.add(row(made=MORNING - OLD_AFTER - timedelta(hours=1)))
    figures.add(row(generation=2))
    lane = figures.lanes[Lane.BATCH]
    assert (lane.old_files, lane.again, lane.total_latency(), lane.counts.done) == (10, 1, None, 2)


def test_many_unfinished_manifests_are_counted_and_some_are_named() -> None:
    figures = ManifestFigures(MORNING)
    for number in range(MAX_NAMED_MANIFESTS + 5):
        figures.add(row(f"m{number}", state=State.FAILED))
    assert (len(figures.unfinished), figures.total.failed) == (MAX_NAMED_MANIFESTS, MAX_NAMED_MANIFESTS + 5)


@pytest.mark.parametrize(("hours", "minutes_before"), [(0, 0), (3, 30)])
def test_the_arrival_is_the_making_of_the_manifest_or_the_start_of_its_hour(hours: int, minutes_before: int) -> None:
    # Given files of 9 o'clock; the manifest is created at once, or by a merge three hours later
    made = MORNING + timedelta(hours=hours)
    found = arrival_of(row(made=made, partition=Partition("orders", "2026-11-20", 9)))
    assert found == (MORNING - timedelta(minutes=minutes_before)).timestamp()


def test_costs_are_added_by_lane_and_dataset() -> None:
    rows = [cost_row("b", minute=9), cost_row("a"), cost_row("s", Lane.STREAM)]
    rows.append(cost_row("empty", shares=(CostShare("", 5),), micro_dollars=5))
    # When
    costs = cost_figures(rows)
    # Then
    assert {key: part.micro_dollars for key, part in costs.groups.items()} == {
        ("batch", "orders"): 3_000_000,
        ("stream", "orders"): 1_500_000,
        ("batch", "clicks"): 1_000_000,
        ("stream", "clicks"): 500_000,
        ("batch", ""): 5,
    }
    assert [run.id for run in costs.job_runs] == ["a", "empty", "s", "b"]
    assert costs.total.dollars == 6.000005
    assert costs.total.dollars_per_gb == pytest.approx(6.000005 / 6)
