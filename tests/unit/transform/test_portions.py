"""Attempts to portions of Spark jobs."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from transform.portions import divide_into_portions


def attempts(*task_counts: int) -> list[Any]:
    return [SimpleNamespace(number=number, tasks=range(count)) for number, count in enumerate(task_counts)]


@pytest.mark.parametrize(
    ("task_counts", "expected"),
    [
        ((), []),
        ((0,), [[0]]),
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
    assert [attempt.number for portion in portions for attempt in portion] == list(range(len(task_counts)))
    assert all(portions)
    assert len(portions) <= count
