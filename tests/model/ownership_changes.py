"""Operations that move files into another manifest, interrupted at each of their writes."""

from __future__ import annotations

from contextlib import ExitStack, suppress
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

from botocore.exceptions import BotoCoreError, ClientError

from lake.errors import HybridRouterError
from lake.manifest import Identity, Lane
from router.ownership import ArrivalOutcome, RoutedArrival, take_ownership
from tests.model.actors import acknowledge, fake_runtime, planner, promoter, stream, sweeper, worker
from tests.model.denial import ONE_FILE
from tests.model.invariants import InvariantChecker
from tests.model.ownership_invariants import check_lanes, check_owners, check_pointers
from tests.model.scheduler import Actor, Crash, is_read
from tests.model.world import PARTITION, SETTINGS, World

if TYPE_CHECKING:
    from collections.abc import Callable

INTERRUPTIONS = ("crash before", "crash after", "stall")
"""A crash before the n-th write; a crash after it is applied, before its response; a stall before it, during which the
operation is repeated by another process."""
FINAL_ROUNDS = 8
SMALL = replace(
    SETTINGS,
    stream=replace(SETTINGS.stream, manifest_files=2),
    batch=replace(SETTINGS.batch, max_attempts=1),
)
"""Two files fill a manifest of the stream lane; after one failed attempt a manifest is superseded or FAILED."""


@dataclass(frozen=True)
class OwnershipChange:
    """One operation that moves files into another manifest."""

    prepare: Callable[[World], object]
    act: Callable[[World, Actor | None], object]
    repeat: Callable[[World], object]
    """The process that takes over without faults: a redelivery, the next plan, the next claim, a repeated promote."""
    stream: tuple[str, ...] = ()
    """Files that are in the stream lane afterwards; all others are in the batch lane."""
    poisonous: tuple[str, ...] = ()


@dataclass
class InterruptingScheduler:
    """In place of the scheduler: counts the writes of its only actor and interrupts it at one of them."""

    checker: InvariantChecker
    number: int = 0
    """The write to interrupt, from 1; 0: none."""
    interruption: str = ""
    while_stalled: Callable[[], object] = lambda: None
    writes: list[str] = field(default_factory=list)
    actors: dict[str, Actor] = field(default_factory=dict)
    dead: bool = False

    def call(self, _: Actor, client: Any, operation: str, request: dict[str, Any]) -> Any:
        if self.dead:
            raise Crash
        if is_read(operation):
            return getattr(client, operation)(**request)
        self.writes.append(operation)
        interruption = self.interruption if len(self.writes) == self.number else ""
        if interruption == "crash before":
            self._crash()
        if interruption == "stall":
            self.while_stalled()
        response = getattr(client, operation)(**request)
        self.checker.check()
        if interruption == "crash after":
            self._crash()
        return response

    def _crash(self) -> None:
        self.dead = True
        raise Crash


def _route(world: World, actor: Actor | None) -> None:
    lanes = {"orders/c.ndjson": Lane.BATCH}
    waiting = [file for file in world.arrived if file not in world.acknowledged]
    routed = [RoutedArrival(file, PARTITION, lanes.get(file.key, Lane.STREAM), "model") for file in waiting]
    result = take_ownership(world.router(actor), routed, {})
    for file in waiting:
        if result.outcomes[Identity.of(file)] != ArrivalOutcome.UNSETTLED:
            acknowledge(world, file)


def _redeliver(world: World) -> None:
    for _ in range(3):
        world.wait(timedelta(hours=2))
        _route(world, None)
    sweeper(world, None)


def _plan_again(world: World) -> None:
    planner(world, None)


def _sweep_later(world: World, actor: Actor | None) -> None:
    world.wait(timedelta(hours=2))
    sweeper(world, actor)


def _collect(world: World) -> None:
    """Three parts in one collection."""
    for name in "abc":
        world.collected(name)


def _promote(world: World, actor: Actor | None) -> None:
    promoter(world, actor, ("a", "b", "c"))


def _promote_a(world: World, actor: Actor | None) -> None:
    promoter(world, actor, ("a",))


def _queue_denied(world: World) -> None:
    """A manifest with a file that no job may read until the operation has been repeated."""
    world.queued("a", "b")
    world.denied.add(ONE_FILE)


OWNERSHIP_CHANGES = {
    "route": OwnershipChange(lambda world: world.arrive("a", "b", "c"), _route, _redeliver, stream=("a", "b")),
    "divide": OwnershipChange(_collect, planner, _plan_again),
    "divide when the hour is over": OwnershipChange(_collect, _sweep_later, lambda world: _sweep_later(world, None)),
    "promote from a collection": OwnershipChange(_collect, _promote_a, lambda world: _promote_a(world, None), ("a",)),
    "promote": OwnershipChange(
        lambda world: world.queued("a", "b", "c", "d"), _promote, lambda world: _promote(world, None), ("a", "b", "c")
    ),
    "poison": OwnershipChange(
        lambda world: world.queued("a", "b"),
        lambda world, actor: worker(world, actor, "worker"),
        lambda world: worker(world, None, f"next-{world.token(4)}"),
        poisonous=("b",),
    ),
    "hand-over": OwnershipChange(
        lambda world: world.queued("a", "b", lane=Lane.STREAM),
        lambda world, actor: stream(world, actor, "stream"),
        lambda world: stream(world, None, f"next-{world.token(4)}"),
        poisonous=("b",),
    ),
    "denied": OwnershipChange(
        _queue_denied,
        lambda world, actor: worker(world, actor, "worker"),
        lambda world: worker(world, None, f"next-{world.token(4)}"),
    ),
}


def writes_without_interruption(change: OwnershipChange) -> list[str]:
    """The operations of the writes of an uninterrupted run, which must keep every promise as well."""
    return _play(change, 0, "")


def interrupt(change: OwnershipChange, number: int, interruption: str) -> None:
    """Interrupt the operation at its n-th write; raises ``Violation`` for a promise broken then or later."""
    _play(change, number, interruption)


def _play(change: OwnershipChange, number: int, interruption: str) -> list[str]:
    world = World(settings=SMALL, attempts_without_cause=SMALL.batch.max_attempts)
    checker = InvariantChecker(world)
    with ExitStack() as stack:
        # One successor per supersede: the operation needs more than one of them.
        stack.enter_context(patch("router.requests.promote.MAX_SUCCESSORS", 1))
        stack.enter_context(fake_runtime(world))
        change.prepare(world)
        world.after_write = checker.check
        world.poisonous = frozenset(f"orders/{name}.ndjson" for name in change.poisonous)
        world.dynamodb.catch_up()
        scheduler: Any = InterruptingScheduler(checker, number, interruption, lambda: change.repeat(world))
        world.scheduler = scheduler
        with suppress(Crash, HybridRouterError, BotoCoreError, ClientError):
            change.act(world, Actor("interrupted", lambda: None))
        check_owners(world)
        change.repeat(world)
        check_owners(world)
        check_lanes(world, change.stream)
        check_pointers(world)
        world.denied.clear()
        _finish(world, checker)
    return list(scheduler.writes)


def _finish(world: World, checker: InvariantChecker) -> None:
    """Sweep and run both lanes until each file is in the lake once, or FAILED."""
    for number in range(FINAL_ROUNDS):
        world.wait(timedelta(hours=2))
        sweeper(world, None)
        stream(world, None, f"later-stream-{number}")
        planner(world, None)
        worker(world, None, f"later-{number}")
        check_owners(world)
    checker.check_end()
