"""A reprocess, interrupted at each of its writes and repeated: nothing is lost, doubled, or queued twice."""

from __future__ import annotations

from contextlib import suppress
from datetime import timedelta
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

import pytest
from botocore.exceptions import BotoCoreError, ClientError

from lake.ledger.transitions import Manifests
from router.requests.reprocess import reprocess
from router.requests.steps import NextStep, next_reprocess_step
from tests.model.actors import fake_runtime, sweeper, worker
from tests.model.invariants import InvariantChecker
from tests.model.ownership_changes import INTERRUPTIONS, InterruptingScheduler
from tests.model.ownership_invariants import check_owners
from tests.model.scheduler import Actor, Crash, Violation
from tests.model.world import World

if TYPE_CHECKING:
    from collections.abc import Callable

    from lake.ledger import ManifestRow
    from router.requests.steps import Only

WRITES = 3
"""One update for each of the manifests."""


def ask(world: World, actor: Actor | None, request: str = "request-1") -> dict[str, Any]:
    fields = {"dataset": "orders", "from": "2026-11-20T09", "to": "2026-11-20T09", "only": "all", "request": request}
    return reprocess(fields, world.router(actor))


def play(number: int, interruption: str, meanwhile: Callable[[World], object]) -> list[int]:
    """Three manifests, of which one is FAILED, and a request for them, interrupted at its n-th write and repeated.

    Returns the generations at the end.

    Raises
    ------
    Violation
        A promise is broken at any write, or at the end.
    """
    world = World()
    checker = InvariantChecker(world)
    with fake_runtime(world):
        manifests = [world.queued(name) for name in "abc"]
        world.after_write = checker.check
        worker(world, None, "first", manifests[:2])
        ledger = world.router(None).ledger
        row = ledger.manifests.get(manifests[2])
        assert row is not None
        world.causes.add((row.id, row.generation))
        assert ledger.manifests.fail(row, "the cause", world.now)
        world.dynamodb.catch_up()
        scheduler: Any = InterruptingScheduler(checker, number, interruption, lambda: meanwhile(world))
        world.scheduler = scheduler
        with suppress(Crash, BotoCoreError, ClientError):
            ask(world, Actor("interrupted", lambda: None))
        check_owners(world)
        # The cause is removed; what was queued is converted before the request is repeated.
        worker(world, None, "between")
        ask(world, None)
        worker(world, None, "after")
        check_owners(world)
        _sweep_and_check(world, checker)
        return [world.rows()[manifest]["generation"] for manifest in manifests]


def _sweep_and_check(world: World, checker: InvariantChecker) -> None:
    for _ in range(2):
        world.wait(timedelta(hours=2))
        sweeper(world, None)
    checker.check_end()


def repeat_and_run(world: World) -> None:
    ask(world, None)
    worker(world, None, "meanwhile")


@pytest.mark.parametrize("number", range(1, WRITES + 1))
@pytest.mark.parametrize("interruption", INTERRUPTIONS)
def test_the_repetition_of_an_interrupted_request_queues_each_manifest_once(interruption: str, number: int) -> None:
    assert play(number, interruption, repeat_and_run) == [2, 2, 2]


@pytest.mark.parametrize("number", range(1, WRITES + 1))
def test_another_request_and_a_run_while_one_is_stalled_cost_one_generation_at_most(number: int) -> None:
    def other_request_and_run(world: World) -> None:
        ask(world, None, "request-2")
        worker(world, None, "meanwhile")

    generations = play(number, "stall", other_request_and_run)
    # Manifests that the first request had queued, or had not read yet, are DONE again when it resumes.
    assert set(generations) <= {2, 3}


def _forget_the_request(self: Manifests, row: ManifestRow, now: Any, request: str | None = None) -> bool:
    return FORCE(self, row, now)


FORCE = Manifests.force


def _ignore_the_request(row: ManifestRow | None, only: Only, request: str) -> NextStep:
    return next_reprocess_step(row, only, f"not {request}")


def _force_unfenced(self: Manifests, row: ManifestRow, now: Any, request: str | None = None) -> bool:
    with patch("lake.ledger.transitions.row_unchanged", lambda _: []):
        return FORCE(self, row, now, request)


@pytest.mark.parametrize(
    "mutation",
    [
        lambda: patch.object(Manifests, "force", _forget_the_request),
        lambda: patch("router.requests.reprocess.next_reprocess_step", _ignore_the_request),
        lambda: patch.object(Manifests, "force", _force_unfenced),
    ],
    ids=["the row forgets the request", "the decision ignores the request", "no fence"],
)
def test_removing_any_rule_is_detected(mutation: Any) -> None:
    def breaks(number: int, interruption: str) -> bool:
        try:
            return play(number, interruption, repeat_and_run) != [2, 2, 2]
        except Violation:
            return True

    with mutation():
        assert any(breaks(number, interruption) for number in range(1, WRITES + 1) for interruption in INTERRUPTIONS)
