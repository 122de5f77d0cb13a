"""Every fault that a history can inject, and the conditions of its files and runs that some of them need."""

from random import Random

from tests.chaos.injection import ACTIONS, RETRIED_BY_BOTOCORE
from tests.chaos.injection_points import INJECTION_POINTS, INPUT_READ

WORKER_POINTS = ("upload create", "upload part", INPUT_READ)
"""Points that a Spark worker reaches, not the driver."""


def fault_space() -> list[tuple[str, str, str]]:
    """(point, ``before`` or ``after``, action) of every fault that can occur, in a fixed order."""
    found = []
    for point in INJECTION_POINTS:
        for action in ACTIONS:
            if action == "kill worker" and point not in WORKER_POINTS:
                continue
            if point == INPUT_READ and (action in RETRIED_BY_BOTOCORE or action == "lost response"):
                continue
            # Renewals run in a thread of their own; a process that stalls elsewhere finds its lease lost there.
            if action == "stall" and point == "renew":
                continue
            # Only an applied request can lose its response; a throttled one is refused before it is applied.
            moments = {"throttle": ("before",), "unavailable": ("before",), "lost response": ("after",)}
            found += [(point, when, action) for when in moments.get(action, ("before", "after"))]
    return found


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
}
"""Conditions without which a history never reaches an injection point."""


def conditions_for(point: str, random: Random) -> set[str]:
    """Conditions at random, and those that the point needs."""
    chosen = {condition for condition in CONDITIONS if random.random() < CONDITION_RATE}
    return chosen | NEEDED_BY_POINT.get(point, set())
