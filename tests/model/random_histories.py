"""Random histories: faults, events and switches at random, replayable by their seed."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tests.model.histories import History, play
from tests.model.scenarios import single_faults
from tests.model.scheduler import CRASH, LOSE_REQUEST, LOSE_RESPONSE, REPEAT, STALE_READ, SWITCH

if TYPE_CHECKING:
    from tests.model.scenarios import Scenario
    from tests.model.scheduler import Actor

FAULT_RATE = 0.06
"""Probability of a fault at a step without a switch."""
ONCE = (LOSE_RESPONSE, LOSE_REQUEST, STALE_READ, "lose_upload", "change_document")
MAX_FAULTS = {
    **dict.fromkeys(ONCE, 1),
    REPEAT: 2,
    "force": 2,
    "expire_lease": 4,
    "advance_hours": 3,
    "report_stopped": 2,
}
"""Per history: the product bounds its attempts, so the model bounds the reasons to repeat them."""


def at_random(scenario: Scenario, seed: int) -> History:
    """The random history of a seed."""
    dice = random.Random(f"{scenario.name}-{seed}")
    remaining = Counter(MAX_FAULTS | {CRASH: dice.randint(0, 2)})
    switch_rate = dice.choice((0.05, 0.2, 0.5))
    expiry_rate = dice.choice((0, 0.02, 0.2)) if "expire_lease" in scenario.events else 0

    def fault_at(_: int, actor: Actor, operation: str) -> str:
        if dice.random() < switch_rate:
            event = "expire_lease" if dice.random() < expiry_rate and remaining["expire_lease"] else SWITCH
            remaining[event] -= 1
            return f"{event}:{dice.choice(scenario.actors)}"
        if dice.random() >= FAULT_RATE:
            return ""
        fault = dice.choice(single_faults(scenario, operation))
        if fault in remaining:
            if not remaining[fault]:
                return ""
            remaining[fault] -= 1
        return fault

    return play(scenario, fault_at, used_id_succeeds=dice.random() < 0.5)


@dataclass
class Exploration:
    """The result of many random histories."""

    histories: int = 0
    faults: Counter[str] = field(default_factory=Counter)
    """Number of faults by kind."""
    violation: History | None = None
    """The first history that breaks a promise."""


def explore(scenario: Scenario, seed: int, max_histories: int) -> Exploration:
    """Play random histories until one breaks a promise; the same seed gives the same histories."""
    found = Exploration()
    for number in range(max_histories):
        history = at_random(scenario, seed * max_histories + number)
        found.histories += 1
        found.faults.update(fault.partition(":")[0] for fault in history.faults.values())
        if history.violation:
            found.violation = history
            break
    return found
