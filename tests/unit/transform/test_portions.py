"""Attempts to portions of Spark jobs."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from transform.plan_attempt import divide_into_portions


def task(ndjson_bytes: int, stream_seconds: float | None = None) -> SimpleNamespace:
    return SimpleNamespace(ndjson_bytes=ndjson_bytes, stream_seconds=stream_seconds)


def attempts(*task_counts: int) -> list[Any]:
    return [
        SimpleNamespace(number=number, tasks=[task(7) for _ in range(count)])
        for number, count in enumerate(task_counts)
    ]


@pytest.mark.parametrize(
    ("task_counts", "expected"),
    [
        ((), []),
        ((0,), [[0]]),
        ((0, 1, 1, 1), [[1], [2], [3, 0]]),
        ((1, 1, 1), [[0], [1], [2]]),
        ((1, 1, 1, 1, 1, 1), [[0, 1], [2, 3], [4, 5]]),
        ((9, 1, 1, 1), [[0], [1, 2, 3]]),
    ],
)
def test_portions_have_about_the_same_number_of_tasks(task_counts: tuple[int, ...], expected: list[list[int]]) -> None:
    portions: list[list[Any]] = divide_into_portions(attempts(*task_counts), 3)
    assert [[attempt.number for attempt in portion] for portion in portions] == expected


@given(st.lists(st.integers(0, 40), max_size=60), st.integers(1, 16))
def test_each_attempt_is_in_one_portion_and_there_are_not_too_many(task_counts: list[int], count: int) -> None:
    portions: list[list[Any]] = divide_into_portions(attempts(*task_counts), count)
    assert sorted(attempt.number for portion in portions for attempt in portion) == list(range(len(task_counts)))
    assert all(portions)
    assert len(portions) <= count


@pytest.mark.parametrize(("stream_seconds", "expected"), [(None, [2, 1, 3, 0]), (300.0, [0, 1, 2, 3])])
def test_the_longest_task_goes_first_except_in_the_stream_lane(
    stream_seconds: float | None, expected: list[int]
) -> None:
    # Given attempts in order of arrival, and one large file among them
    tasks = [[1], [5, 5], [1, 40], [2, 3]]
    found: list[Any] = [
        SimpleNamespace(number=number, tasks=[task(size, stream_seconds) for size in sizes])
        for number, sizes in enumerate(tasks)
    ]
    # When
    portions: list[list[Any]] = divide_into_portions(found, 4)
    # Then
    assert [attempt.number for portion in portions for attempt in portion] == expected
