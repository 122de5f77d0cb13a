"""What the cost of the sample is judged by: medians of paired rounds, which one disturbed round does not change."""

import pytest

from bench.chunk_sample_cost import Cost, added_share, share_inside


def test_one_disturbed_round_changes_neither_share() -> None:
    # Given three rounds of 2 % inside, and one in which something else used the processor
    sampled = [Cost(102.0, 2.04)] * 3 + [Cost(150.0, 9.0)]
    without = [Cost(100.0)] * 4
    # When / Then
    assert share_inside(sampled) == pytest.approx(0.02)
    assert added_share(without, sampled) == pytest.approx(0.02)


def test_a_machine_that_grows_slower_adds_nothing() -> None:
    without = [Cost(100.0 * speed) for speed in (1, 2, 3)]
    sampled = [Cost(101.0 * speed) for speed in (1, 2, 3)]
    assert added_share(without, sampled) == pytest.approx(0.01)
