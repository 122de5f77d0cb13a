"""A hostile file costs memory, output and requests in proportion to its size; ``make hostile`` has the full sizes."""

import os

import pytest

from tests.hostile.conversion import cost_of, problems_of_verify
from tests.hostile.corpus import CORPUS, HostileFile


@pytest.mark.parametrize("file", CORPUS, ids=lambda file: file.name)
def test_a_hostile_file_costs_little(file: HostileFile) -> None:
    count = file.full if os.environ.get("HOSTILE_FILES") == "full" else file.small
    cost = cost_of(file, count)
    assert cost.problems(file) == []
    if file.verified:
        assert problems_of_verify(file, count, cost) == []
