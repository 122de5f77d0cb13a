"""Random histories: a seed decides the faults of every step; of a violation, only the faults that it needs are left."""

from collections import Counter
from dataclasses import dataclass, field
from random import Random

from tests.model.histories import History, play
from tests.model.scenarios import Scenario, single_faults
from tests.model.scheduler import CRASH, LOSE_REQUEST, LOSE_RESPONSE, REPEAT, STALE_READ, SWITCH, Actor

FAULT_RATE = 0.06
"""Probability of a fault at a step without a switch."""
SWITCH_RATES = (0.05, 0.2, 0.5)
EXPIRY_RATES = (0, 0.02, 0.2)
"""Probability that a lease expires at a switch: the actor becomes a zombie."""
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
MAX_CRASHES = 2
STEPS = {"poison": 400}
DEFAULT_STEPS = 200
"""Number of steps with random faults, more than most histories have; later steps have none."""


class RandomFaults:
    """The random decisions of one history."""

    def __init__(self, scenario: Scenario, random: Random) -> None:
        self._scenario, self._random = scenario, random
        self._steps = STEPS.get(scenario.name, DEFAULT_STEPS)
        self._switch_rate = random.choice(SWITCH_RATES)
        self._expiry_rate = random.choice(EXPIRY_RATES) if "expire_lease" in scenario.events else 0
        self._remaining = Counter(MAX_FAULTS | {CRASH: random.randint(0, MAX_CRASHES)})

    def fault_at(self, step: int, actor: Actor, operation: str) -> str:
        random, faults = self._random, single_faults(self._scenario, operation)
        if step > self._steps:
            return ""
        if random.random() < self._switch_rate:
            name = random.choice(self._scenario.actors)
            if random.random() < self._expiry_rate and self._take("expire_lease"):
                return f"expire_lease:{name}"
            return "" if name == actor.name else f"{SWITCH}:{name}"
        fault = random.choice(faults) if faults and random.random() < FAULT_RATE else ""
        return fault if self._take(fault) else ""

    def _take(self, fault: str) -> bool:
        """Whether the fault may still occur; counts it."""
        if fault not in self._remaining:
            return True
        self._remaining[fault] -= 1
        return self._remaining[fault] >= 0


@dataclass
class Exploration:
    """The result of many random histories."""

    histories: int = 0
    faults: Counter[str] = field(default_factory=Counter)
    """Number of faults by kind."""
    violation: History | None = None


def explore(scenario: Scenario, seed: int, max_histories: int, *, shrink: bool = True) -> Exploration:
    """Play random histories until one breaks a promise; the same seed gives the same histories."""
    found, random = Exploration(), Random(seed)
    while found.histories < max_histories and found.violation is None:
        used_id_succeeds = random.random() < 0.5
        history = play(scenario, RandomFaults(scenario, random).fault_at, used_id_succeeds)
        found.histories += 1
        found.faults.update(fault.partition(":")[0] for fault in history.faults.values())
        if history.violation:
            found.violation = _shrunk(history, used_id_succeeds) if shrink else history
    return found


def _shrunk(history: History, used_id_succeeds: bool) -> History:
    """The history without the faults that it does not need to break a promise."""
    # Without a later fault, an earlier one may not be needed either.
    for step in (*sorted(history.faults, reverse=True), *sorted(history.faults)):
        fewer = {at: fault for at, fault in history.faults.items() if at != step}
        if step in history.faults:
            shorter = play(history.scenario, lambda now, *_, fewer=fewer: fewer.get(now, ""), used_id_succeeds)
            history = shorter if shorter.violation else history
    return history
