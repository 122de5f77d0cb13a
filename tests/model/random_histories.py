"""Random histories: hypothesis draws the faults of every step, and shrinks a violation to few faults."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random

from hypothesis import Phase, find, settings
from hypothesis import strategies as st
from hypothesis.errors import NoSuchExample
from hypothesis.strategies import SearchStrategy

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
BYTES_PER_STEP = 2
STEPS = {"poison": 400}
DEFAULT_STEPS = 200
"""Number of steps with random faults, more than most histories have; later steps have none."""


@dataclass(frozen=True)
class FaultPlan:
    """The random decisions of one history."""

    crashes: int
    switch_rate: float
    expiry_rate: float
    used_id_succeeds: bool
    draws: bytes
    """``BYTES_PER_STEP`` bytes for each step. They are one value for hypothesis, not one per step: it varies and
    repeats separate values, which makes whole histories alike (measured in docs/adr/tools.md)."""


def fault_plans(scenario: Scenario) -> SearchStrategy[FaultPlan]:
    """Plans of the scenario; they shrink to fewer faults, because a draw of zero is not a fault."""
    size = STEPS.get(scenario.name, DEFAULT_STEPS) * BYTES_PER_STEP
    expiry_rates = EXPIRY_RATES if "expire_lease" in scenario.events else EXPIRY_RATES[:1]
    return st.builds(
        FaultPlan,
        crashes=st.integers(0, MAX_CRASHES),
        switch_rate=st.sampled_from(SWITCH_RATES),
        expiry_rate=st.sampled_from(expiry_rates),
        used_id_succeeds=st.booleans(),
        draws=st.binary(min_size=size, max_size=size),
    )


def play_plan(scenario: Scenario, plan: FaultPlan) -> History:
    """The history of a plan; the same plan gives the same history."""
    return play(scenario, _PlannedFaults(scenario, plan).fault_at, plan.used_id_succeeds)


class _PlannedFaults:
    def __init__(self, scenario: Scenario, plan: FaultPlan) -> None:
        self._scenario = scenario
        self._plan = plan
        self._remaining = Counter(MAX_FAULTS | {CRASH: plan.crashes})

    def fault_at(self, step: int, actor: Actor, operation: str) -> str:
        """A draw is uniform in [0, 1): first no fault, then a switch, then any other fault."""
        position = (step - 1) * BYTES_PER_STEP
        drawn = self._plan.draws[position : position + BYTES_PER_STEP]
        switch_rate = self._plan.switch_rate
        no_fault_rate = (1 - switch_rate) * (1 - FAULT_RATE)
        draw = int.from_bytes(drawn, "big") / 256**BYTES_PER_STEP - no_fault_rate
        if draw < 0:
            return ""
        if draw < switch_rate:
            return self._switch(draw / switch_rate, actor)
        return self._fault((draw - switch_rate) / (1 - no_fault_rate - switch_rate), operation)

    def _switch(self, draw: float, actor: Actor) -> str:
        without_expiry = 1 - self._plan.expiry_rate
        expiry = draw >= without_expiry
        draw = (draw - without_expiry) / self._plan.expiry_rate if expiry else draw / without_expiry
        name = _pick(self._scenario.actors, draw)
        if expiry and self._take("expire_lease"):
            return f"expire_lease:{name}"
        return "" if name == actor.name else f"{SWITCH}:{name}"

    def _fault(self, draw: float, operation: str) -> str:
        faults = single_faults(self._scenario, operation)
        fault = _pick(faults, draw) if faults else ""
        return fault if self._take(fault) else ""

    def _take(self, fault: str) -> bool:
        """Whether the fault may still occur; counts it."""
        limited = fault in self._remaining
        if limited and self._remaining[fault] == 0:
            return False
        if limited:
            self._remaining[fault] -= 1
        return True


def _pick(options: Sequence[str], draw: float) -> str:
    """The option at a draw from [0, 1]."""
    return options[min(int(draw * len(options)), len(options) - 1)]


@dataclass
class Exploration:
    """The result of many random histories."""

    histories: int = 0
    faults: Counter[str] = field(default_factory=Counter)
    """Number of faults by kind."""
    violation: History | None = None
    """The history with the fewest faults that breaks a promise."""


def explore(scenario: Scenario, seed: int, max_histories: int, *, shrink: bool = True) -> Exploration:
    """Play random histories until one breaks a promise, then shrink it; the same seed gives the same histories.

    ``max_histories``: limit of the search; shrinking plays further histories. ``shrink``: false: the first violation
    that is found.
    """
    found = Exploration()

    def breaks_a_promise(plan: FaultPlan) -> bool:
        history = play_plan(scenario, plan)
        found.histories += 1
        found.faults.update(fault.partition(":")[0] for fault in history.faults.values())
        return history.violation is not None

    try:
        plan = find(
            fault_plans(scenario),
            breaks_a_promise,
            settings=_settings(max_histories, shrink=shrink),
            random=Random(seed),
        )
    except NoSuchExample:
        return found
    found.violation = play_plan(scenario, plan)
    return found


def _settings(max_histories: int, *, shrink: bool) -> settings:
    """Deterministic: no database of earlier failures, no deadline, the seed alone decides."""
    phases = (Phase.generate, Phase.shrink) if shrink else (Phase.generate,)
    return settings(max_examples=max_histories, phases=phases, database=None, deadline=None, derandomize=False)
