"""A hostile file costs memory, output and requests in proportion to its size; ``make hostile`` has the full sizes."""

from dataclasses import replace
from typing import Any

import pytest

from tests.hostile.conversion import DEADLINE, Cost, cost_of, problems_of_verify
from tests.hostile.corpus import CORPUS, HostileFile


@pytest.mark.parametrize("file", CORPUS, ids=lambda file: file.name)
def test_a_hostile_file_costs_little(file: HostileFile) -> None:
    cost = cost_of(file, file.small)
    assert cost.problems(file) == []
    if file.verified:
        assert problems_of_verify(file, file.small, cost) == []


def test_a_slow_file_is_refused_once_its_grace_is_over() -> None:
    file = CORPUS[0]
    assert DEADLINE in str(cost_of(file, file.small, grace=0.01).refused)


@pytest.mark.parametrize(
    "change",
    [
        {"peak": 1 << 40},
        {"parquet": 1001},
        {"quarantine": 1 << 20},
        {"fetched": 1 << 30},
        {"refused": "x"},
        {"seconds": 121},
    ],
)
def test_every_limit_can_fail(change: dict[str, Any]) -> None:
    # Given a file that costs exactly what it may
    file = CORPUS[0]
    cost = Cost(1000, 1000, file.peak_bytes, int(file.parquet_per_inflated * 1000), 20_000, 2000, 1.0, None, [])
    assert cost.problems(file) == []

    # When, Then
    assert len(replace(cost, **change).problems(file)) == 1
