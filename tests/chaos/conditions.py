"""Conditions of a history: what is wrong with its files, or happens to it beside the faults of requests."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from random import Random

CONDITIONS = ("broken file", "force", "orphan", "lost uploads", "failing task")
CONDITION_RATE = 0.15
NEEDED_BY_POINT = {
    "exclusions": {"broken file"},
    "release": {"broken file"},
    "abort upload": {"broken file", "failing task"},
    "adopt": {"orphan"},
    "abandon": {"orphan"},
    "fail": {"lost uploads"},
    "force": {"force"},
    "delete object": {"force"},
    "supersede": {"small manifests"},
}
"""Conditions without which a history never reaches an injection point."""


def conditions_for(point: str, random: Random) -> set[str]:
    """Conditions at random, and those that the point needs."""
    chosen = {condition for condition in CONDITIONS if random.random() < CONDITION_RATE}
    return chosen | NEEDED_BY_POINT.get(point, set())
