"""Progress of an execution against its plan, whenever a job run of it has ended; switches its engine where it must."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from lake.bills import MICRO
from lake.engines import Engine
from lake.layout import plan_index_key
from lake.time import iso_utc
from router.documents import read_document
from router.estimate.night import run_dollars, run_seconds
from router.estimate.offer import offers
from router.run_status.engine_switch import Cause, Decision, NightLeft, decide_switch
from router.telemetry import logger

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from lake.bills import Bill
    from router.run_status.engine_switch import Way
    from router.services import Services

UNDER_WAY = 0.5
"""Assumed part of its work that a run has left which is under way while another one ends."""


@dataclass(frozen=True, slots=True)
class Round:
    """A job run of a run of the plan has ended, or did not start."""

    execution: str
    number: int
    """Of the run in its plan."""
    engine: Engine
    failed: bool
    last: bool
    """Without progress, the run is abandoned after this round."""
    left: float
    """Share of the manifests of the run that are open."""
    bill: Bill | None
    """Of the job run; None: there is none yet, or the job run is not known."""


@dataclass(frozen=True, slots=True)
class Progress:
    """What a round shows of the execution."""

    switched: bool = False
    """The next round uses another engine."""
    late_minutes: float = 0
    """How much later than its deadline the execution is expected to end."""


def check_progress(services: Services, round_: Round) -> Progress:
    """Compare the execution with its plan, and switch its engine if it would not end before its deadline.

    The first caller that switches decides for all runs.

    Raises
    ------
    BotoCoreError, ClientError
        DynamoDB, S3 or the engine refused a request.
    InvalidInputError
        The execution has no plan.
    """
    row = services.ledger.executions.get(round_.execution) or {}
    plan, switch = row.get("plan", {}), row.get("switch")
    if switch is not None:
        if switch["engine"] != round_.engine:
            return Progress(switched=True)
        plan = {**plan, "workers": switch["workers"], "engines": ()}
    if not plan:
        return Progress()
    index = read_document(services, plan_index_key(round_.execution))
    cause, decision = _decide(services, round_, plan, index)
    late = round(decision.late_seconds / 60, 1)
    if decision.switch is not None:
        _switch(services, round_, cause, decision.switch, plan)
        return Progress(switched=True, late_minutes=late)
    if decision.refused is not None:
        facts = _facts(services, round_, cause, decision.refused, plan)
        services.ledger.executions.record(round_.execution, "refused_switch", facts)
        logger.error("engine not switched: batch.night_budget_dollars is too low", execution=round_.execution, **facts)
    return Progress(late_minutes=late)


def current_engine(services: Services, execution: str, engine: str, workers: int) -> dict[str, Any]:
    """Engine and workers of the next job run of an execution: those it was switched to, else the given ones."""
    switch = (services.ledger.executions.get(execution) or {}).get("switch")
    if switch is None:
        return {"engine": engine, "workers": workers}
    return {"engine": switch["engine"], "workers": int(switch["workers"])}


def _decide(
    services: Services, round_: Round, plan: Mapping[str, Any], index: Sequence[Mapping[str, Any]]
) -> tuple[Cause, Decision]:
    settings, available = services.settings, tuple(offers(services.settings))
    workers, concurrency, works = int(plan["workers"]), int(plan["concurrency"]), [run["coreSeconds"] for run in index]
    (offer,) = (offer for offer in available if offer.engine == round_.engine)
    bill = round_.bill
    number, done, allowed = round_.number, 1 - round_.left, [Engine(engine) for engine in plan["engines"]]
    if round_.failed and round_.engine is Engine.GLUE_FLEX and bill is not None and not bill.seconds:
        # The runs that began with this one wait as well.
        cause, first = Cause.NO_CAPACITY, max(number - concurrency + 1, 0)
        left = [*works[first:number], works[number] * round_.left, *works[number + 1 :]]
    else:
        cause, under_way = Cause.BEHIND, number + concurrency
        left = [
            works[number] * round_.left,
            *(work * UNDER_WAY for work in works[number + 1 : under_way]),
            *works[under_way:],
        ]
        expected = run_seconds(works[number] * done, workers, offer) - offer.wait_seconds - offer.start_seconds
        slower = bill.seconds / expected if bill is not None and done and not round_.failed else 1.0
        left = [work * max(slower, 1.0) for work in left]
        if not round_.left and not works[under_way:]:
            # What is under way stays where it is.
            allowed = []
    # What this execution has used is not known yet: its price is that of the plan.
    spent = int(plan["micro_dollars"]) / MICRO - sum(run_dollars(work, workers, offer) for work in left)
    remaining = (datetime.fromisoformat(plan["deadline"]) - services.clock()).total_seconds()
    decision = decide_switch(
        NightLeft(round_.engine, workers, concurrency, tuple(filter(None, left)), remaining, max(spent, 0.0)),
        cause,
        available,
        allowed,
        emr_vcpus=settings.emr.max_vcpus,
        budget_dollars=settings.batch.night_budget_dollars,
        retry_seconds=None if round_.last else settings.batch.held_wait_seconds,
    )
    return cause, decision


def _switch(services: Services, round_: Round, cause: Cause, way: Way, plan: Mapping[str, Any]) -> None:
    facts = _facts(services, round_, cause, way, plan)
    if services.ledger.executions.switch_engine(round_.execution, facts):
        logger.warning("engine switched", execution=round_.execution, **facts)


def _facts(services: Services, round_: Round, cause: Cause, way: Way, plan: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "at": iso_utc(services.clock()),
        "from_engine": round_.engine.value,
        "engine": way.engine.value,
        "workers": way.workers,
        "reason": cause.value,
        "micro_dollars": round(way.dollars * MICRO),
        "planned_micro_dollars": int(plan["micro_dollars"]),
    }
