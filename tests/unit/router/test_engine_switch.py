"""When what is left of an execution is switched to another engine; pure."""

from __future__ import annotations

from typing import Any

import pytest

from lake.engines import Engine
from lake.settings import parse_settings
from router.estimate.offer import MAX_CAPACITY_WAIT_SECONDS, offers
from router.run_status.engine_switch import Cause, Decision, NightLeft, decide_switch

PRICE = {"dpu_hour": 0.44, "dpu_hour_flex": 0.29, "emr_vcpu_hour": 0.052624, "emr_gb_hour": 0.0057785}
OFFERS = tuple(offers(parse_settings({"stage": "t", "price": PRICE})))
FLEX, GLUE, EMR = Engine.GLUE_FLEX, Engine.GLUE, Engine.EMR_SERVERLESS
HOUR = 3600.0
RUN = HOUR * 36
"""Work of a run that takes ten workers, of which nine convert on four vCPUs each, an hour."""


def decide(
    hours: float,
    cause: Cause,
    engine: Engine = FLEX,
    allowed: tuple[Engine, ...] = (FLEX, GLUE),
    runs: int = 4,
    **changes: Any,
) -> Decision:
    """``runs`` runs of an hour, two side by side, so two hours of work, and ``hours`` until the deadline."""
    left = NightLeft(engine, 10, 2, (RUN,) * runs, hours * HOUR, spent_dollars=1.0)
    given = {"emr_vcpus": 400, "budget_dollars": 0, "retry_seconds": 120.0, **changes}
    return decide_switch(left, cause, OFFERS, allowed, **given)


@pytest.mark.parametrize(
    ("hours", "changes", "engine"),
    [
        # There is time for one more wait, and for everything after it
        (8, {}, None),
        (3.0, {}, None),
        # There is not
        (2.8, {}, GLUE),
        (2.5, {}, GLUE),
        # Nothing ends in time any more: the fastest
        (1, {}, GLUE),
        (-1, {}, GLUE),
        # The run would be abandoned otherwise
        (8, {"retry_seconds": None}, GLUE),
        # No other engine is allowed, or only one that has spare capacity
        (2.5, {"allowed": (FLEX,)}, None),
        # EMR Serverless has room for larger runs, so there is more time, and it is cheaper
        (2.5, {"allowed": (FLEX, GLUE, EMR)}, None),
        (1, {"allowed": (FLEX, GLUE, EMR)}, EMR),
        (2.5, {"allowed": (FLEX, EMR, GLUE), "emr_vcpus": 40}, GLUE),
        # EMR Serverless has no room for a single run
        (2.5, {"allowed": (FLEX, EMR), "emr_vcpus": 39}, None),
    ],
)
def test_without_spare_capacity(hours: float, changes: dict[str, Any], engine: Engine | None) -> None:
    decision = decide(hours, Cause.NO_CAPACITY, **changes)
    assert (decision.switch.engine if decision.switch else None) == engine


@pytest.mark.parametrize(
    ("hours", "changes", "engine"),
    [
        # In time
        (2.35, {}, None),
        # Flex is expected to wait in each of two rounds; without that wait it would end in time
        (2.3, {}, GLUE),
        # Too late on any engine, but less so
        (1.5, {}, GLUE),
        (1.5, {"engine": GLUE}, None),
        (1.5, {"engine": GLUE, "allowed": (FLEX, GLUE)}, None),
        # A larger run is faster where there are fewer runs than places
        (1.5, {"engine": FLEX, "runs": 1}, None),
        (0.9, {"engine": FLEX, "runs": 1}, GLUE),
        (1.5, {"allowed": (FLEX,)}, None),
    ],
)
def test_behind_the_plan(hours: float, changes: dict[str, Any], engine: Engine | None) -> None:
    decision = decide(hours, Cause.BEHIND, **changes)
    assert (decision.switch.engine if decision.switch else None) == engine


def test_waiting_leaves_time_for_everything_on_the_other_engine() -> None:
    """The last moment at which an execution still waits: one more wait in vain, then all of the work, in time."""
    hours = min(number / 100 for number in range(200, 400) if not decide(number / 100, Cause.NO_CAPACITY).switch)
    # When it has waited in vain once more
    later = decide(hours - (120 + MAX_CAPACITY_WAIT_SECONDS + 300) / HOUR, Cause.NO_CAPACITY)
    # Then it switches, and ends in time
    assert later.switch is not None
    assert later.late_seconds == 0


def test_a_switch_has_the_workers_that_the_dpus_of_the_plan_allow() -> None:
    decision = decide(0.9, Cause.BEHIND, runs=1)
    assert decision.switch is not None
    assert decision.switch.workers == 20
    assert decision.late_seconds == 0


@pytest.mark.parametrize(("budget", "switched"), [(0, True), (21, True), (18, False)])
def test_the_budget_is_for_the_whole_execution(budget: float, switched: bool) -> None:
    # Given: one dollar is spent, and four hours of ten DPUs at $0.44 are left
    decision = decide(2.5, Cause.NO_CAPACITY, budget_dollars=budget)
    # Then
    assert (decision.switch is not None) == switched
    refused = decision.refused
    assert (refused is None) == switched
    if refused is not None:
        assert 18 < refused.dollars < 21
        assert decision.late_seconds > 0


def test_a_budget_takes_the_way_that_it_allows() -> None:
    # Given: nothing ends in time, and Glue starts sooner than EMR Serverless, which costs less
    allowed = (FLEX, GLUE, EMR)
    fastest = decide(1, Cause.NO_CAPACITY, allowed=allowed, emr_vcpus=80)
    assert fastest.switch is not None
    assert fastest.switch.engine == GLUE
    # When
    decision = decide(1, Cause.NO_CAPACITY, allowed=allowed, emr_vcpus=80, budget_dollars=15)
    # Then
    assert decision.switch is not None
    assert (decision.switch.engine, decision.switch.dollars < 15) == (EMR, True)


@pytest.mark.parametrize("cause", list(Cause))
def test_what_is_late_is_told_also_without_another_engine(cause: Cause) -> None:
    assert decide(1, cause, allowed=(FLEX,)).late_seconds > HOUR
    assert decide(8, cause, allowed=(FLEX,)).late_seconds == 0


def test_an_execution_that_has_nothing_left_is_late_only_after_its_deadline() -> None:
    assert decide(0.1, Cause.BEHIND, runs=0).late_seconds == 0
    assert decide(-0.5, Cause.BEHIND, runs=0).late_seconds == HOUR / 2
