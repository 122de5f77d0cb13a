"""One history: a scenario, what happens at which step, and then repairs until nothing is left to do."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING

from lake.manifest import Lane
from tests.model.actors import planner, played, promoter, route, stream, sweeper, worker
from tests.model.invariants import Watch
from tests.model.scheduler import Actor, Baton, Crash, Violation, is_read
from tests.model.world import World

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

CALL_FAULTS = ("crash", "lose", "drop", "twice")
REPAIR_ROUNDS = 14
ONCE = ("lose", "drop", "stale", "vanish", "tamper")
BUDGET = {**dict.fromkeys(ONCE, 1), "twice": 2, "force": 2, "expire": 4, "hours": 3, "declare": 2}
"""How often each may happen in a random history: attempts are bounded, so are the reasons to repeat them."""


@dataclass(frozen=True)
class Scenario:
    """What stands when the history begins, who acts, and what the environment may do."""

    name: str
    actors: tuple[str, ...]
    manifests: tuple[tuple[str, ...], ...] = ()
    """Files of manifests that are QUEUED already."""
    arriving: tuple[str, ...] = ()
    """Files that the route actors are told of."""
    lane: Lane = Lane.BATCH
    done: bool = False
    """The manifests are published already, and forced."""
    events: tuple[str, ...] = ("expire", "declare")
    poisonous: tuple[str, ...] = ()
    unreadable: tuple[str, ...] = ()
    slow: bool = False
    urgent: tuple[str, ...] = ()
    """Files that the promote actors make urgent."""


SCENARIOS = {
    scenario.name: scenario
    for scenario in (
        Scenario("workers", ("worker1", "worker2", "sweep1"), (("a", "b"),)),
        Scenario("vanish", ("worker1", "worker2", "sweep1"), (("a", "b"),), events=("expire", "vanish", "hours")),
        Scenario("tampered", ("worker1", "worker2", "sweep1"), (("a", "b"),), events=("expire", "tamper")),
        Scenario(
            "reprocess",
            ("worker1", "sweep1", "worker2", "sweep2"),
            (("a", "b"),),
            done=True,
            events=("expire", "force", "hours", "declare"),
        ),
        Scenario(
            "ownership", ("route1", "route2", "sweep1", "worker1"), arriving=("a", "b"), events=("expire", "hours")
        ),
        Scenario(
            "stream",
            ("route1", "stream1", "stream2", "sweep1"),
            arriving=("a", "b"),
            lane=Lane.STREAM,
            events=("expire", "declare", "checkpoint", "hours"),
        ),
        Scenario("plan", ("plan1", "worker1", "plan2", "sweep1"), (("a",), ("b",), ("c",))),
        Scenario(
            "promote",
            ("promote1", "worker1", "plan1", "stream1", "promote2", "sweep1"),
            (("a", "b"), ("c",)),
            events=("expire", "declare", "checkpoint", "hours"),
            urgent=("a", "c"),
        ),
        Scenario("poison", ("worker1", "worker2", "sweep1"), (("a", "b"),), poisonous=("orders/b.ndjson",)),
        Scenario("unreadable", ("worker1", "worker2", "sweep1"), (("a", "b"),), unreadable=("orders/b.ndjson",)),
        Scenario("slow", ("worker1", "sweep1", "worker2"), (("a", "b"),), slow=True, events=("declare",)),
    )
}


@dataclass
class History:
    """What was done, and what came of it."""

    scenario: Scenario
    faults: dict[int, str]
    """By step; what really happened."""
    steps: list[tuple[str, str]] = field(default_factory=list)
    """Actor and operation of every step."""
    violation: str | None = None
    trace: list[str] = field(default_factory=list)

    def describe(self) -> str:
        return f"{self.scenario.name} {self.faults}: {self.violation}\n" + "\n".join(self.trace)


def play(scenario: Scenario, choose: Callable[[int, Actor, str], str], spent_id_answers: bool = False) -> History:
    """Run the scenario to its end under the choices; then repair without faults, and look."""
    history = History(scenario, {})
    world = World(slow=scenario.slow)
    world.s3.spent_id_answers = spent_id_answers
    watch = Watch(world)
    world.look = watch.look

    def record(step: int, actor: Actor, operation: str) -> str:
        choice = choose(step, actor, operation)
        history.steps.append((actor.name, operation))
        if choice:
            history.faults[step] = choice
        return choice

    with played(world):
        try:
            prepare(world, scenario)
            baton = world.baton = Baton(record, world.happen, watch.look, world.clock, world.issue)
            for name in scenario.actors:
                baton.add(_actor(world, scenario, name))
            baton.run()
            history.trace = baton.trace
            if baton.violation:
                raise Violation(baton.violation)
            repair(world, watch, scenario)
        except Violation as violation:
            history.violation = str(violation)
            history.trace.append(f"     VIOLATION {violation}")
    return history


def prepare(world: World, scenario: Scenario) -> None:
    ids = [world.queued(*names, lane=scenario.lane) for names in scenario.manifests]
    world.arrive(*scenario.arriving)
    if scenario.done:
        worker(world, None, "before", ids)
        for manifest in ids:
            row = world.router(None).ledger.manifests.get(manifest)
            assert row is not None
            world.router(None).ledger.manifests.force(row, world.now)
    world.poisonous, world.unreadable = frozenset(scenario.poisonous), frozenset(scenario.unreadable)
    world.dynamodb.catch_up()


def _actor(world: World, scenario: Scenario, name: str) -> Actor:
    actor = Actor(name, lambda: None)
    kind = name.rstrip("0123456789")
    bodies: dict[str, Callable[[], object]] = {
        "worker": lambda: worker(world, actor, name),
        "sweep": lambda: sweeper(world, actor),
        "stream": lambda: stream(world, actor, name),
        "plan": lambda: planner(world, actor),
        "promote": lambda: promoter(world, actor, scenario.urgent),
        "route": lambda: route(world, actor, world.arrived, scenario.lane),
    }
    actor.body = bodies[kind]
    return actor


def repair(world: World, watch: Watch, scenario: Scenario) -> None:
    """No faults any more: events come again, sweep and workers run by their schedules."""
    ended: Violation | None = None
    for number in range(REPAIR_ROUNDS):
        world.wait(timedelta(hours=2))
        lost = [file for file in world.arrived if file not in world.acknowledged]
        for action in (
            lambda lost=lost: route(world, None, lost, scenario.lane),
            lambda: sweeper(world, None),
            lambda number=number: stream(world, None, f"repair-stream-{number}"),
            lambda number=number: worker(world, None, f"repair-{number}"),
        ):
            action()
        try:
            watch.the_end()
        except Violation as violation:
            ended = violation
        else:
            return
    assert ended is not None
    raise ended


def one_fault(scenario: Scenario) -> Iterator[History]:
    """The history without faults, then every history with one, at every step."""
    quiet = play(scenario, lambda *_: "")
    yield quiet
    for step, (actor, operation) in enumerate(quiet.steps, start=1):
        for choice in choices(scenario, actor, operation):
            yield play(scenario, lambda now, *_, step=step, choice=choice: choice if now == step else "")


def directed(scenario: Scenario, script: Sequence[tuple[str, str, str]]) -> History:
    """A known trace: each (actor, operation, choice) happens at the first such call after the one before."""
    left = list(script)

    def choose(_: int, actor: Actor, operation: str) -> str:
        if left and left[0][:2] == (actor.name, operation):
            return left.pop(0)[2]
        return ""

    history = play(scenario, choose)
    assert not left or history.violation, f"the script did not get to {left}: {history.describe()}"
    return history


def choices(scenario: Scenario, actor: str, operation: str) -> list[str]:
    """What can happen at a step."""
    faults = ["crash", "drop"] if is_read(operation) else list(CALL_FAULTS)
    faults += ["stale"] if operation == "query" else []
    others = [other for other in scenario.actors if other != actor]
    turns = ["to", *(event for event in scenario.events if event in ("expire", "declare", "tamper"))]
    return [*faults, *scenario.events, *(f"{turn}:{other}" for turn in turns for other in others)]


def at_random(scenario: Scenario, seed: int, rate: float = 0.06) -> History:
    """Faults, events and changes of actor at random; replayable by its seed."""
    dice = random.Random(f"{scenario.name}-{seed}")
    budget = Counter(BUDGET | {"crash": dice.randint(0, 2)})
    switching = dice.choice((0.05, 0.2, 0.5))
    zombies = dice.choice((0, 0.02, 0.2)) if "expire" in scenario.events else 0

    def choose(_: int, actor: Actor, operation: str) -> str:
        if dice.random() < switching:
            event = "expire" if dice.random() < zombies and budget["expire"] else "to"
            budget[event] -= 1
            return f"{event}:{dice.choice(scenario.actors)}"
        if dice.random() >= rate:
            return ""
        choice = dice.choice([item for item in choices(scenario, actor.name, operation) if ":" not in item])
        if choice in budget:
            if not budget[choice] or (choice == "stale" and operation != "query"):
                return ""
            budget[choice] -= 1
        return choice

    return play(scenario, choose, spent_id_answers=dice.random() < 0.5)


__all__ = ["SCENARIOS", "Crash", "History", "Scenario", "at_random", "choices", "directed", "one_fault", "play"]
