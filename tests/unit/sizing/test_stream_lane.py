"""The stream lane in virtual time."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lake.engines.glue import START_SECONDS as GLUE_START_SECONDS
from lake.ledger import ManifestRow, State
from lake.manifest import Lane
from lake.settings.lanes import MAX_LOOK_SECONDS, MAX_POINTERS_PER_TRIGGER
from router.stream.spill import TASK_SECONDS
from sizing.result import Latencies
from sizing.routing import SimulatedManifest, Work
from sizing.stream_lane import (
    EXECUTOR_IDLE_SECONDS,
    FIRST_EXECUTOR_SECONDS,
    PORTION_SECONDS,
    URGENT_PORTION_SECONDS,
    StreamLane,
)
from tests.unit.lake.world import PARTITION
from tests.unit.sizing.world import MB, settings


def counted(*latencies: tuple[float, int, float]) -> Latencies:
    found = Latencies()
    for seconds, files, spread in latencies:
        found.add(seconds, files, spread)
    return found


@given(st.lists(st.tuples(st.floats(20, 9e4), st.integers(1, 10**6), st.integers(0, 40)), min_size=1, max_size=30))
def test_all_files_have_a_latency_within_their_limits(latencies: list[tuple[float, int, float]]) -> None:
    found = counted(*latencies)
    assert found.files == sum(files for _, files, _ in latencies)
    percentiles = [found.percentile(share) for share in (0, 0.5, 0.95, 1)]
    assert percentiles == sorted(percentiles, key=lambda seconds: seconds or 0)
    assert percentiles[0] == pytest.approx(min(s - max(w - 1, 0) / 2 for s, _, w in latencies), abs=0.051)
    assert percentiles[-1] == pytest.approx(max(s + max(w - 1, 0) / 2 for s, _, w in latencies), abs=0.051)


WINDOW = (0.0, 86_400.0)
MIN_WORKERS = 2
"""Minimum of a Glue stream."""
DPU_SECOND = 0.308 / 3600
PEAK = PORTION_SECONDS + TASK_SECONDS + 10
URGENT = URGENT_PORTION_SECONDS + TASK_SECONDS + 10
"""From the trigger, or the look, until a manifest of 10 s on one core is published."""


def seconds(value: float) -> object:
    """A latency, counted in tenths of a second."""
    return pytest.approx(value, abs=0.051)


def manifest(queued: float, seconds: float = 10.0, tasks: int = 1, size: int = MB) -> SimulatedManifest:
    row = ManifestRow("m", State.QUEUED, Lane.STREAM, PARTITION, "", size, 1)
    return SimulatedManifest(row, queued, queued, Work(seconds, tasks, seconds / tasks))


def lane(window: tuple[float, float] | None = WINDOW, event_window: int = 1, **stream: Any) -> StreamLane:
    of = settings(stream={"trigger_seconds": 30, **stream}, input={"event_window_seconds": event_window})
    return StreamLane(of, window)


def converted(found: StreamLane, *manifests: SimulatedManifest) -> StreamLane:
    for item in manifests:
        found.add(item)
    found.finish()
    return found


def test_the_files_of_a_manifest_have_arrived_all_through_their_window() -> None:
    # Given a manifest of a window of 20 s, whose middle is 29 s before the trigger
    found = converted(lane(event_window=20), manifest(601.0))
    # Then the first of its files waited half a window longer than the average one, the last half a window less
    average = 29 + PEAK
    percentiles = [found.latencies.percentile(share) or 0 for share in (0.025, 0.5, 1)]
    assert percentiles == pytest.approx([average - 10, average, average + 10], abs=0.55)


def test_manifests_that_are_converted_together_are_published_one_after_the_other() -> None:
    # Given 4 cores, and 8 manifests that each take a core for 10 s
    found = converted(lane(max_workers=2), *[manifest(601.0)] * 8)
    # Then the first ones are published before the last one
    first, last = (found.latencies.percentile(share) or 0 for share in (0.5, 1))
    assert (first, last) == (seconds(29 + PEAK), seconds(29 + PEAK + 10 + TASK_SECONDS))


def test_after_a_long_micro_batch_the_next_begins_at_once() -> None:
    found = converted(lane(), manifest(600.0, 100), manifest(610.0))
    assert found.latencies.percentile(1) == pytest.approx(90 + PORTION_SECONDS + PEAK, abs=1)


def test_manifests_beyond_the_work_of_a_portion_wait_for_the_one_before() -> None:
    # Given manifests of a minute each, and cores that have 27 s each
    many = [manifest(600.0, size=2400 * MB) for _ in range(3)]
    together = converted(lane(), *many)
    apart = converted(lane(max_workers=2), *many)
    assert apart.latencies.percentile(1) == pytest.approx(3 * PEAK, abs=1)
    assert (apart.latencies.percentile(1) or 0) > (together.latencies.percentile(1) or 0)


def test_pointers_beyond_the_limit_of_a_micro_batch_wait_for_the_next() -> None:
    full = converted(lane(), *[manifest(600.0, seconds=0.1)] * MAX_POINTERS_PER_TRIGGER)
    over = converted(lane(), *[manifest(600.0, seconds=0.1)] * (MAX_POINTERS_PER_TRIGGER + 1))
    assert (full.latencies.percentile(1) or 0) < 30 <= (over.latencies.percentile(1) or 0)


def test_workers_leave_a_minute_after_their_work() -> None:
    # Given work that takes all workers, and a file half an hour later
    one = converted(lane(), manifest(600.0, seconds=4000, tasks=400))
    both = converted(lane(), manifest(600.0, seconds=4000, tasks=400), manifest(2400.0))
    # Then the workers have ended before it arrives, after a minute that is billed as well
    assert both.dollars == pytest.approx(one.dollars)
    busy = PORTION_SECONDS + (4000 + 400 * TASK_SECONDS) / 36 + 15 * 8 / 10
    assert one.dollars / DPU_SECOND - 86_400 * MIN_WORKERS == pytest.approx((busy + EXECUTOR_IDLE_SECONDS) * 8)


def test_a_quiet_stream_is_billed_for_its_smallest_run_all_day() -> None:
    found, alone = converted(lane()), converted(lane(None))
    assert found.run_seconds == 86_400
    assert found.dollars == pytest.approx(86_400 * MIN_WORKERS * DPU_SECOND)
    assert (alone.run_seconds, alone.dollars) == (0.0, 0.0)


def test_an_urgent_file_outside_the_window_starts_a_run_that_ends_when_it_is_idle() -> None:
    found = converted(lane(None, idle_minutes=15), manifest(600.0))
    assert found.latencies.percentile(1) == seconds(GLUE_START_SECONDS + PEAK)
    assert found.dollars == pytest.approx(MIN_WORKERS * (GLUE_START_SECONDS + PEAK + 15 * 60) * DPU_SECOND)


def test_work_in_progress_at_the_end_of_the_window_is_finished_and_the_run_then_ends() -> None:
    # Given a micro-batch that begins before the end of the window and ends after it
    found = converted(lane((0.0, 605.0), idle_minutes=15), manifest(600.0))
    # Then the run ends with it
    assert found.dollars == pytest.approx(MIN_WORKERS * (600 + PEAK) * DPU_SECOND)


def urgent(queued: float, files: int = 1) -> SimulatedManifest:
    found = manifest(queued)
    return replace(found, row=replace(found.row, urgent=True, files=files))


def test_an_urgent_manifest_does_not_wait_for_a_backlog_of_many_triggers() -> None:
    # Given 20 GB of peak files, which take many micro-batches, and urgent files in the middle of them, which are nearly
    # all files
    backlog = [manifest(600.0, seconds=250.0, tasks=7, size=1000 * MB) for _ in range(MAX_POINTERS_PER_TRIGGER // 5)]
    alone = converted(lane(), *backlog)
    found = converted(lane(), *backlog, *[urgent(float(at), files=10**6) for at in range(605, 900, 5)])
    # Then they wait for the next check at most, and the others hardly longer
    assert (alone.latencies.percentile(0.5) or 0) > 300
    assert (found.latencies.percentile(0.99) or 0) <= MAX_LOOK_SECONDS + URGENT
    assert (found.latencies.percentile(1) or 0) < 1.2 * (alone.latencies.percentile(1) or 0)


@pytest.mark.parametrize(
    ("window", "manifests", "longest"),
    [
        (WINDOW, [manifest(601.0)], 29 + PEAK),
        (WINDOW, [urgent(601.0)], 4 + URGENT),
        # A portion from 600 s to 611.75 s, and a pointer after the check at 610 s: it does not wait until 615 s.
        (WINDOW, [urgent(600.0), urgent(611.0)], 600 + URGENT - 611 + URGENT),
        (None, [urgent(600.0), urgent(605.0)], GLUE_START_SECONDS + URGENT),
    ],
    ids=["the next trigger", "the next check", "the end of an urgent portion", "the start of a run"],
)
def test_a_manifest_waits_for(
    window: tuple[float, float] | None, manifests: list[SimulatedManifest], longest: float
) -> None:
    assert converted(lane(window), *manifests).latencies.percentile(1) == seconds(longest)


def on_emr(**stream: Any) -> StreamLane:
    return lane(engine="emr-serverless", **stream)


def test_a_quiet_stream_on_emr_serverless_costs_its_driver() -> None:
    # Given 2 vCPU at $0.052624 and 8 GB at $0.0057785 an hour; and executors of 4 vCPU and 16 GB
    driver, executor = 2 * 0.052624 + 8 * 0.0057785, 4 * 0.052624 + 16 * 0.0057785
    assert converted(on_emr()).dollars == pytest.approx(24 * driver)
    assert converted(on_emr(emr_min_executors=2)).dollars == pytest.approx(24 * (driver + 2 * executor))


def test_a_file_waits_for_the_first_executor_on_emr_serverless() -> None:
    # Given the same file with and without an executor that is kept
    alone, kept = (
        converted(on_emr(emr_min_executors=number), manifest(600.0, seconds=40, tasks=4)) for number in (0, 1)
    )
    # Then it waits if only the driver is kept, and the executor is billed until it was idle for a minute
    waits = (alone.latencies.percentile(1) or 0) - (kept.latencies.percentile(1) or 0)
    assert waits >= FIRST_EXECUTOR_SECONDS - 1
    more = alone.dollars - converted(on_emr()).dollars
    assert more > (40 / 4 + EXECUTOR_IDLE_SECONDS) / 3600 * (4 * 0.052624 + 16 * 0.0057785)
