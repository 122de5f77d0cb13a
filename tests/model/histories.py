"""One history: a scenario, the faults at its steps, and then repairs until no work is left."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from functools import partial

from botocore.exceptions import BotoCoreError, ClientError

from lake.errors import HybridRouterError
from lake.manifest import ObjectVersion
from lake.settings import LedgerSettings
from tests.model.actors import (
    backfiller,
    fake_runtime,
    forcer,
    looker,
    overnight,
    planner,
    promoter,
    receive,
    reprocesser,
    route,
    stream,
    sweeper,
    worker,
)
from tests.model.environment import KEEP, apply_event, expire, expire_rows, force_all
from tests.model.invariants import InvariantChecker
from tests.model.scenarios import Scenario, single_faults, switches
from tests.model.scheduler import Actor, Scheduler, Violation
from tests.model.world import LONG_AGO, OWNER_DIED, World

MAX_REPAIR_ROUNDS = 14


@dataclass
class History:
    """What happened in one history."""

    scenario: Scenario
    faults: dict[int, str] = field(default_factory=dict)
    """The fault of each step that had one; see ``Scheduler``."""
    steps: list[tuple[str, str]] = field(default_factory=list)
    """Actor and operation of every step."""
    violation: str | None = None
    trace: list[str] = field(default_factory=list)

    def describe(self) -> str:
        """The faults, the broken promise and every step."""
        return f"{self.scenario.name} {self.faults}: {self.violation}\n" + "\n".join(self.trace)


def play(scenario: Scenario, fault_at: Callable[[int, Actor, str], str], used_id_succeeds: bool = False) -> History:
    """Run the scenario to its end under the faults; then repair without faults, and check every promise."""
    history = History(scenario)
    world = World(slow=scenario.slow, versions=scenario.versions)
    if scenario.forgotten:
        world.settings = replace(world.settings, ledger=LedgerSettings(keep_days=KEEP.days))
    world.s3.used_id_succeeds = used_id_succeeds
    checker = InvariantChecker(world)
    world.after_write = checker.check

    def record(step: int, actor: Actor, operation: str) -> str:
        fault = fault_at(step, actor, operation)
        history.steps.append((actor.name, operation))
        if fault:
            history.faults[step] = fault
        return fault

    with fake_runtime(world):
        try:
            _prepare(world, scenario)
            scheduler = Scheduler(record, partial(apply_event, world), checker.check, world.clock, world.set_issued_at)
            world.scheduler = scheduler
            for name in scenario.actors:
                scheduler.add(_actor(world, scenario, name))
            scheduler.run()
            history.trace = scheduler.trace
            if scheduler.violation:
                raise Violation(scheduler.violation)
            _repair(world, checker, scenario)
        except Violation as violation:
            history.violation = str(violation)
            history.trace.append(f"     VIOLATION {violation}")
    return history


def _prepare(world: World, scenario: Scenario) -> None:
    ids = [world.queued(*names, lane=scenario.lane) for names in scenario.manifests]
    for name in scenario.collected:
        world.collected(name)
    for name in scenario.damaged:
        world.damage_part(f"orders/{name}.ndjson")
    if scenario.late:
        _publish_hour(world, closed_early=scenario.closed_early)
        world.arrive_in_hour(*scenario.late)
    arriving = world.arrive(*scenario.arriving)
    if any(name.startswith("queue") for name in scenario.actors):
        # Some events come twice.
        world.send_events([*arriving, *arriving[:1]])
    world.arrive(*scenario.lost)
    world.wait(-LONG_AGO)
    world.arrive(*scenario.old)
    world.wait(LONG_AGO)
    for file in [file for file in world.arrived if file.key in {f"orders/{name}.ndjson" for name in scenario.missing}]:
        world.remove(file)
    if scenario.orphaned:
        world.orphan(*scenario.orphaned)
        world.wait(OWNER_DIED)
    if scenario.expired:
        worker(world, None, "before", ids)
        world.wait(timedelta(hours=2))
        sweeper(world, None)
        expire(world, restored=scenario.missing, expired=scenario.expired)
        reprocesser(world, None)
        sweeper(world, None)
    if scenario.reprocessed:
        worker(world, None, "before", ids)
        force_all(world)
    if scenario.forgotten:
        worker(world, None, "before", ids)
        expire_rows(world)
    world.poisonous, world.unreadable = frozenset(scenario.poisonous), frozenset(scenario.unreadable)
    world.dynamodb.catch_up()


def _publish_hour(world: World, *, closed_early: bool) -> None:
    """A file of the hour is published, and its readers may be told so at once."""
    world.tells_hours = True
    world.collected("a")
    if closed_early:
        planner(world, None)
    world.wait(timedelta(hours=1))
    planner(world, None)
    worker(world, None, "before")
    world.wait(timedelta(hours=1))


def _actor(world: World, scenario: Scenario, name: str) -> Actor:
    actor = Actor(name, lambda: None)
    kind = name.rstrip("0123456789")
    bodies: dict[str, Callable[[], object]] = {
        "worker": lambda: worker(world, actor, name),
        "sweep": lambda: sweeper(world, actor),
        "look": lambda: looker(world, actor),
        "stream": lambda: stream(world, actor, name),
        "plan": lambda: planner(world, actor),
        "overnight": lambda: overnight(world, actor, name),
        "queue": lambda: receive(world, actor),
        "backfill": lambda: backfiller(world, actor),
        "force": lambda: forcer(world, actor),
        "reprocess": lambda: reprocesser(world, actor),
        "promote": lambda: promoter(world, actor, scenario.urgent),
        "promote_all": lambda: promoter(world, actor),
        "route": lambda: route(world, actor, _announced(world, scenario), scenario.lane),
    }
    actor.body = bodies[kind]
    return actor


def _announced(world: World, scenario: Scenario) -> list[ObjectVersion]:
    """The files whose events are delivered until they are acknowledged, but not by the queue."""
    if any(name.startswith("queue") for name in scenario.actors):
        return []
    names = {f"orders/{name}.ndjson" for name in (*scenario.lost, *scenario.old)}
    return [file for file in world.arrived if file.key not in names and file not in world.acknowledged]


def _repair(world: World, checker: InvariantChecker, scenario: Scenario) -> None:
    """Without faults: events are redelivered, sweep and workers run on their schedules, until all promises hold."""
    world.restore_parts()
    for number in range(MAX_REPAIR_ROUNDS):
        world.wait(timedelta(hours=2))
        try:
            route(world, None, _announced(world, scenario), scenario.lane)
            receive(world, None)
            sweeper(world, None)
            stream(world, None, f"repair-stream-{number}")
            worker(world, None, f"repair-{number}")
        except (HybridRouterError, BotoCoreError, ClientError) as error:
            raise Violation(f"a repair failed: {type(error).__name__}: {error}") from error
        try:
            checker.check_end()
        except Violation:
            if number == MAX_REPAIR_ROUNDS - 1:
                raise
        else:
            return


def histories_with_one_fault(scenario: Scenario, number: int | None = None) -> Iterator[History]:
    """The history without faults, then those with exactly one: for every fault at every step, or about so many."""
    undisturbed = play(scenario, lambda *_: "")
    yield undisturbed
    faults = [
        (step, fault)
        for step, (actor, operation) in enumerate(undisturbed.steps, start=1)
        for fault in (*single_faults(scenario, operation), *switches(scenario, actor))
    ]
    every = 1 if number is None else max(1, len(faults) // number)
    for step, fault in faults[::every]:
        yield play(scenario, lambda now, *_, step=step, fault=fault: fault if now == step else "")


def scripted(scenario: Scenario, script: Sequence[tuple[str, str, str]]) -> History:
    """A known trace: each (actor, operation, fault) occurs at the first such request after the previous one."""
    pending = list(script)

    def fault_at(_: int, actor: Actor, operation: str) -> str:
        if pending and pending[0][:2] == (actor.name, operation):
            return pending.pop(0)[2]
        return ""

    history = play(scenario, fault_at)
    assert not pending or history.violation, f"the script did not reach {pending}: {history.describe()}"
    return history
