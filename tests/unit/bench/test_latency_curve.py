"""The table of latency and price in docs/deploy.md is what the simulator says today."""

from __future__ import annotations

import pytest

from bench.latency_curve import PAGE, STEPS, measure_step, row


@pytest.mark.parametrize(("window", "trigger"), [STEPS[-1], STEPS[-2]])
def test_the_page_has_the_figures_of_the_simulator(window: int, trigger: int) -> None:
    line = row(measure_step(window, trigger))
    page = PAGE.read_text(encoding="utf-8").splitlines()
    assert line in page, "run python -m bench.latency_curve --write"
