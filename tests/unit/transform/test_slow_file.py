"""A file that costs too much processor time is excluded with a reason; waiting for S3 costs none."""

from __future__ import annotations

import gzip
import itertools

import pytest

from lake.settings import ConvertSettings, parse_settings
from tests.unit.transform.test_run_task import run, version
from transform.file_deadline import GRACE_SECONDS, SlowFileError, SplitDeadline, stream_seconds
from transform.source import UnreadableNowError
from transform.task_model import Split

SETTINGS = ConvertSettings(split_bytes=1000, min_bytes_per_second=100, max_core_minutes=10)
PLAIN, GZIP = b"{}\n" * 1000, gzip.compress(b"{}\n", mtime=0) + bytes(3000)


def spend(seconds: float, read_bytes: int, head: bytes = PLAIN, settings: ConvertSettings = SETTINGS) -> None:
    """Read so many bytes of a file in so much processor time, the first two of them in none."""
    file = version("orders/a.json", head)
    clock = iter([5.0, 5.0, 5.0 + seconds])
    deadline = SplitDeadline(Split(file, 0, file.size), settings, lambda: next(clock))
    for piece in (memoryview(head)[:2], memoryview(bytes(read_bytes - 2))):
        deadline.add(piece)
        deadline.check()


@pytest.mark.parametrize(
    ("seconds", "read_bytes", "head"),
    [(0, 2, PLAIN), (GRACE_SECONDS, 2, PLAIN), (61, 6100, PLAIN), (600, 60_000, PLAIN), (61, 610, GZIP)],
)
def test_a_file_within_its_time_or_above_the_speed_goes_on(seconds: float, read_bytes: int, head: bytes) -> None:
    spend(seconds, read_bytes, head)


@pytest.mark.parametrize(
    ("seconds", "read_bytes", "head", "limit"),
    [
        (61, 6099, PLAIN, "slower than convert.min_bytes_per_second (100)"),
        (61, 609, GZIP, "slower than convert.min_bytes_per_second (100) allows a compressed file"),
        (601, 1_000_000, PLAIN, "more than convert.max_core_minutes (10)"),
    ],
)
def test_a_slower_file_is_unreadable_and_the_reason_names_the_limit(
    seconds: float, read_bytes: int, head: bytes, limit: str
) -> None:
    with pytest.raises(UnreadableNowError) as error:
        spend(seconds, read_bytes, head)
    reason, minutes = str(error.value), round(seconds / 60, 1)
    assert reason.startswith(f"{read_bytes:,} bytes took {minutes:g} minutes of processor time, {limit}: ")
    assert reason.endswith("reprocess s3://input/orders/a.json")


@pytest.mark.parametrize(
    ("seconds", "read_bytes", "limit"),
    [(301, 40_000, "stream.latency_goal_seconds"), (61, 6099, "slower than convert.min_bytes_per_second")],
)
def test_in_the_stream_lane_a_slow_file_is_not_called_unreadable(seconds: float, read_bytes: int, limit: str) -> None:
    file, clock = version("orders/a.json", PLAIN), iter([0.0, seconds])
    goal = stream_seconds(parse_settings({"stage": "t"}).stream)
    deadline = SplitDeadline(Split(file, 0, file.size), SETTINGS, lambda: next(clock), goal)
    deadline.add(memoryview(bytes(read_bytes)))
    with pytest.raises(SlowFileError, match=limit):
        deadline.check()


@pytest.mark.parametrize(("goal", "seconds"), [(1, 60), (300, 300), (7200, 7200)])
def test_the_stream_has_a_file_for_its_latency_goal_and_at_least_a_minute(goal: int, seconds: float) -> None:
    assert stream_seconds(parse_settings({"stage": "t", "stream": {"latency_goal_seconds": goal}}).stream) == seconds


def test_without_a_slowest_speed_only_the_time_is_limited() -> None:
    slow = parse_settings({"stage": "t", "convert": {"min_bytes_per_second": 0}}).convert
    spend(3600, 10, settings=slow)


def test_a_slow_file_is_excluded_and_the_others_of_its_task_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    # Given a processor that needs an hour for each look at the clock while the slow file is read
    hours = itertools.chain([0.0], itertools.repeat(3600.0))
    monkeypatch.setattr("transform.run_task.thread_time", lambda: next(hours))
    body = b'{"a":1}\n'
    # When
    _, (result,), reads = run({"a.json.gz": gzip.compress(body), "b.json": body}, 1000, 10_000)
    # Then the first file is excluded, the second one only read, and nothing is published by this attempt
    [failure] = result.failures
    assert failure.file.key == "a.json.gz"
    assert "convert.min_bytes_per_second" in failure.reason
    assert [split.split.file.key for split in result.splits] == ["b.json"]
    assert reads.aborted


def test_the_parts_of_a_slow_file_are_given_up_with_the_first(monkeypatch: pytest.MonkeyPatch) -> None:
    # Given a file of eight parts in one task, of which the first one is too slow
    looks: list[float] = []

    def hours() -> float:
        looks.append(3600.0 * len(looks))
        return looks[-1]

    monkeypatch.setattr("transform.run_task.thread_time", hours)
    # When
    _, (result,), _ = run({"a.json": b'{"a":1}\n' * 100}, 100, 10_000)
    # Then the others are not read
    assert [failure.file.key for failure in result.failures] == ["a.json"]
    assert len(looks) == 2


def test_a_piece_that_inflates_to_many_batches_is_not_read_to_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    # Given 8 KB of gzip, each batch of which takes 40 seconds
    looks = itertools.count(0, 40)
    monkeypatch.setattr("transform.run_task.thread_time", lambda: float(next(looks)))
    # When
    _, (result,), _ = run({"a.json.gz": gzip.compress(b"{}\n" * 2_500_000)}, 1 << 20, 10_000)
    # Then it is excluded after the second one
    [failure] = result.failures
    assert "took 1.3 minutes of processor time" in failure.reason
