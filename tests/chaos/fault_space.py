"""What a seed chooses from: settings, and faults at every point."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lake.settings import (
    BatchSettings,
    ConvertSettings,
    DatasetRule,
    PeakSettings,
    Settings,
    StreamSettings,
    SweepSettings,
)
from tests.chaos.injection import ACTIONS, UNDER_RETRIES
from tests.chaos.injection_points import INPUT_READ, WRITES

if TYPE_CHECKING:
    from random import Random

WORKER_POINTS = ("upload create", "upload part", INPUT_READ)
DATASETS = ("orders", "clicks")


def combinations() -> list[tuple[str, str, str]]:
    """Every (point, before or after, action) that makes sense."""
    found = []
    for point in WRITES:
        for action in ACTIONS:
            if action == "kill worker" and point not in WORKER_POINTS:
                continue
            if point == INPUT_READ and (action in UNDER_RETRIES or action == "lost answer"):
                continue
            # Renewals have a thread of their own; whoever sleeps elsewhere finds its lease lost there.
            if action == "stall" and point == "renew":
                continue
            # A lost answer is one of a request that was carried out; a refusal comes before.
            whens = {"throttle": ("before",), "unavailable": ("before",), "lost answer": ("after",)}
            found += [(point, when, action) for when in whens.get(action, ("before", "after"))]
    return found


def settings(random: Random) -> Settings:
    """Small limits, so that a few lines make several splits, tasks, manifests and runs."""
    return Settings(
        "chaos",
        datasets=tuple(DatasetRule(name, f"{name}/") for name in DATASETS),
        peak=PeakSettings(hours=()),
        stream=StreamSettings(manifest_files=random.randint(1, 3), max_attempts=random.randint(1, 3)),
        batch=BatchSettings(manifest_files=random.randint(2, 6), max_attempts=random.randint(1, 3), flex=False),
        convert=ConvertSettings(
            split_bytes=random.choice([64, 300, 1 << 20]), target_file_bytes=random.choice([64, 500, 1 << 20])
        ),
        sweep=SweepSettings(listing_hours=0),
    )
