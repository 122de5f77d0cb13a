"""A file that costs too much processor time is excluded with a reason; waiting for S3 costs none."""

from __future__ import annotations

import gzip
from typing import TYPE_CHECKING

import pytest

from lake.settings import ConvertSettings, parse_settings
from tests.unit.transform.test_run_task import run, version
from transform.file_deadline import SplitDeadline
from transform.source import UnreadableFileError
from transform.task_model import Split

if TYPE_CHECKING:
    from collections.abc import Iterator

SETTINGS = ConvertSettings(deadline_minutes=10, min_bytes_per_second=100)
MINUTE = 60.0


def spend(processor_seconds: float, read_bytes: int, settings: ConvertSettings = SETTINGS) -> None:
    """Read so many bytes of a file in so much processor time."""
    file = version("orders/a.json.gz", b"x" * 1000)
    clock = iter([5.0, 5.0 + processor_seconds])
    SplitDeadline(Split(file, 0, 1000), settings, lambda: next(clock)).check(read_bytes)


@pytest.mark.parametrize(("minutes", "read_bytes"), [(0, 0), (9.9, 0), (10, 60_000), (600, 3_600_000)], ids=str)
def test_a_file_within_its_time_or_above_the_speed_goes_on(minutes: float, read_bytes: int) -> None:
    spend(minutes * MINUTE, read_bytes)


@pytest.mark.parametrize(("minutes", "read_bytes"), [(10, 59_999), (10, 0), (600, 3_599_999)], ids=str)
def test_a_slower_file_is_unreadable_and_the_reason_says_what_to_do(minutes: float, read_bytes: int) -> None:
    with pytest.raises(UnreadableFileError) as caught:
        spend(minutes * MINUTE, read_bytes)
    reason = str(caught.value)
    assert f"{read_bytes:,} bytes took {minutes:g} minutes of processor time" in reason
    assert "convert.min_bytes_per_second (100)" in reason
    assert "run: hybrid-router reprocess s3://input/orders/a.json.gz" in reason


def test_without_a_speed_there_is_no_deadline() -> None:
    spend(100_000 * MINUTE, 0, ConvertSettings(min_bytes_per_second=0))


def test_the_settings_that_the_reason_names_exist() -> None:
    settings = parse_settings({"stage": "t", "convert": {"min_bytes_per_second": 0, "deadline_minutes": 1}})
    assert settings.convert.min_bytes_per_second == 0


def test_a_slow_file_is_excluded_and_the_others_of_its_task_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    # Given a processor that needs an hour for each look at the clock while the slow file is read
    hours = _hours()
    monkeypatch.setattr("transform.run_task.thread_time", lambda: next(hours))
    body = b'{"a":1}\n'
    # When
    _, (result,), reads = run({"a.json.gz": gzip.compress(body), "b.json": body}, 1000, 10_000)
    # Then the first file is excluded, the second one only read, and nothing is published by this attempt
    [failure] = result.failures
    assert failure.file.key == "a.json.gz"
    assert "convert.deadline_minutes" in failure.reason
    assert [split.split.file.key for split in result.splits] == ["b.json"]
    assert reads.aborted


def _hours() -> Iterator[float]:
    yield from (0.0, 3600.0)
    while True:
        yield 3600.0


def test_waiting_for_the_input_costs_no_processor_time(monkeypatch: pytest.MonkeyPatch) -> None:
    # Given a clock on the wall that runs a year with each look, while the processor is idle
    years = iter(range(0, 1 << 40, 365 * 24 * 3600))
    monkeypatch.setattr("transform.run_task.time.monotonic", lambda: float(next(years)))
    # When, Then
    _, (result,), reads = run({"a.json": b'{"a":1}\n'}, 1000, 10_000)
    assert not result.failures
    assert reads.rows == [{"a": "1"}]


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
