"""Which speed was asked for, and whether it is there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from bench.runner import MAIN, Figure

if TYPE_CHECKING:
    from collections.abc import Sequence

HARD = ("random_order", "sparse", "wide")
LEAST = {"one_pass": 2.0, "obvious": 4.0, "duckdb": 1.4}
AIM = {"one_pass": 3.0, "obvious": 6.0, "duckdb": 2.0}
MIN_HARD = 1.5
MIN_SCALING = 1.7
MAX_TASK_BYTES = 300 * 10**6


@dataclass(frozen=True, slots=True)
class Goal:
    """One figure that was asked for."""

    what: str
    measured: str
    wanted: str
    reached: bool


def goals(figures: Sequence[Figure]) -> list[Goal]:
    """Those of the shapes that were measured, from the medians."""
    of = {(figure.way, figure.shape): figure for figure in figures}
    found = []
    measured = {figure.shape for figure in figures}
    for shape in (shape for shape in MAIN if shape in measured):
        for way, least in LEAST.items():
            ratio = _ratio(of[("ours", shape)], of[(way, shape)])
            found += [_times(f"{shape}: ours / {way}", ratio, least), _times("... aim", ratio, AIM[way])]
        found.append(
            _times(f"{shape}: 2 cores / 1 core", _ratio(of[("ours", shape)], of[("ours_1", shape)]), MIN_SCALING)
        )
    for shape in (shape for shape in HARD if shape in measured):
        ratio = _ratio(of[("ours", shape)], of[("one_pass", shape)])
        found.append(_times(f"{shape}: ours / one_pass", ratio, MIN_HARD))
    for figure in figures:
        if figure.way == "ours" and figure.peak_bytes is not None:
            reached = figure.peak_bytes <= MAX_TASK_BYTES
            found.append(
                Goal(f"{figure.shape}: memory of a task", f"{figure.peak_bytes / 1e6:.0f} MB", "<= 300 MB", reached)
            )
    return found


def _ratio(figure: Figure, other: Figure) -> float:
    return figure.mb_per_second / other.mb_per_second


def _times(what: str, ratio: float, least: float) -> Goal:
    return Goal(what, f"{ratio:.2f}", f">= {least}", ratio >= least)
