"""One history: a scenario, the faults at its steps, and then repairs until no work is left.

Random histories: a seed decides the faults of every step; a violation is reduced to the necessary faults.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from functools import partial
from random import Random

from botocore.exceptions import BotoCoreError, ClientError

from lake.errors import HybridRouterError
from lake.ledger import State
from lake.manifest import ObjectVersion
from lake.settings import LedgerSettings
from tests.model import actors
from tests.model.invariants import InvariantChecker
from tests.model.scenarios import Scenario, single_faults, switches
from tests.model.scheduler import (
    CRASH,
    LOSE_REQUEST,
    LOSE_RESPONSE,
    REPEAT,
    STALE_READ,
    SWITCH,
    Actor,
    Scheduler,
    Violation,
)
from tests.model.world import LEASE, LONG_AGO, OWNER_DIED, World

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

    with actors.fake_runtime(world):
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
        # Some events are delivered twice.
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
        actors.worker(world, None, "before", ids)
        world.wait(timedelta(hours=2))
        actors.sweeper(world, None)
        expire(world, restored=scenario.missing, expired=scenario.expired)
        actors.reprocesser(world, None)
        actors.sweeper(world, None)
    if scenario.reprocessed:
        actors.worker(world, None, "before", ids)
        actors.forcer(world, None)
    if scenario.forgotten:
        actors.worker(world, None, "before", ids)
        expire_rows(world)
    world.poisonous, world.unreadable = frozenset(scenario.poisonous), frozenset(scenario.unreadable)
    world.dynamodb.catch_up()


def _publish_hour(world: World, *, closed_early: bool) -> None:
    """A file of the hour is published, and its readers may be notified at once."""
    world.announces_hours = True
    world.collected("a")
    if closed_early:
        actors.planner(world, None)
    world.wait(timedelta(hours=1))
    actors.planner(world, None)
    actors.worker(world, None, "before")
    world.wait(timedelta(hours=1))


def _actor(world: World, scenario: Scenario, name: str) -> Actor:
    actor = Actor(name, lambda: None)
    kind = name.rstrip("0123456789")
    bodies: dict[str, Callable[[], object]] = {
        "worker": lambda: actors.worker(world, actor, name),
        "sweep": lambda: actors.sweeper(world, actor),
        "look": lambda: actors.looker(world, actor),
        "stream": lambda: actors.stream(world, actor, name),
        "plan": lambda: actors.planner(world, actor),
        "overnight": lambda: actors.overnight(world, actor, name),
        "queue": lambda: actors.receive(world, actor),
        "backfill": lambda: actors.backfiller(world, actor),
        "force": lambda: actors.forcer(world, actor),
        "reprocess": lambda: actors.reprocesser(world, actor),
        "promote": lambda: actors.promoter(world, actor, scenario.urgent),
        "promote_all": lambda: actors.promoter(world, actor),
        "route": lambda: actors.route(world, actor, _announced(world, scenario), scenario.lane),
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
            actors.route(world, None, _announced(world, scenario), scenario.lane)
            actors.receive(world, None)
            actors.sweeper(world, None)
            actors.stream(world, None, f"repair-stream-{number}")
            actors.worker(world, None, f"repair-{number}")
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
    """The history without faults, then histories with exactly one: every fault at every step, or about this number."""
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


KEEP = timedelta(days=60)
"""How long the ledger keeps the row of an arrival, in scenarios in which rows expire."""


def apply_event(world: World, event: str, actor: Actor) -> None:
    """Apply an event at a request of the actor."""
    if event == "report_stopped":
        world.stopped_runs.add(actor.name)
    else:
        EVENTS[event](world)


def expire(world: World, restored: Sequence[str], expired: Sequence[str]) -> None:
    """Missing files are restored; others are deleted permanently, as by a rule of their bucket."""
    for file in world.arrived:
        name = file.key.removeprefix("orders/").removesuffix(".ndjson")
        if name in restored:
            world.s3.put_object(Bucket=file.bucket, Key=file.key, Body=world.bodies[file.key, file.etag])
        if name in expired:
            world.remove(file)
    world.inputs_expired = True


def _change_documents(world: World) -> None:
    for identity, item in world.rows().items():
        if item["state"] == State.PUBLISHING:
            world.causes.add((identity, item["generation"]))
            world.s3.put_object(Bucket="control", Key=item["document"]["key"], Body=b"{}")


def _lose_upload(world: World) -> None:
    for upload in world.s3.open_uploads()[:1]:
        manifest, _, rest = world.s3.uploads[upload].key.rsplit("/", 1)[-1].partition("-g")
        world.causes.add((manifest, int(rest.partition("-")[0])))
        world.s3.uploads[upload].state = "aborted"


def _overwrite_input(world: World) -> None:
    """The first existing file is put again with other content; the event of the new version is pending."""
    file = next((file for file in world.arrived if world.s3.has(file)), None)
    if file is not None:
        world.send_events(world.arrive(file.key.split("/")[1].removesuffix(".ndjson")))


def _delete_input(world: World) -> None:
    """The last existing file is deleted; with versions its bytes stay, and its version can be read."""
    file = next((file for file in reversed(world.arrived) if world.s3.has(file)), None)
    if file is not None:
        world.remove(file)


def _add_rule(world: World) -> None:
    """Files that were ignored so far are routed by every process that starts from now on."""
    world.suffixes += (".txt",)
    suffixes = (*world.settings.input.suffixes, ".txt")
    world.settings = replace(world.settings, input=replace(world.settings.input, suffixes=suffixes))


def _put_again(world: World) -> None:
    """All files are put again with the same bytes; without versions they are the same arrivals, with new events."""
    for file in world.arrived:
        world.s3.put_object(Bucket=file.bucket, Key=file.key, Body=world.bodies[file.key, file.etag])
        world.send_events([file])


def expire_rows(world: World) -> None:
    """Months pass without a live process: DynamoDB deletes the expired rows.

    Without versions, the same bytes are put again shortly before. The first events are redelivered afterwards.
    """
    world.send_events(world.arrived)
    world.wait(KEEP - timedelta(hours=12))
    if not world.versions:
        _put_again(world)
    world.wait(timedelta(hours=15))
    items = world.dynamodb.items
    for key in [key for key, item in items.items() if item.get("expires_at", math.inf) <= world.now.timestamp()]:
        del items[key]


EVENTS: dict[str, Callable[[World], object]] = {
    "expire_lease": lambda world: world.wait(LEASE + timedelta(seconds=1)),
    "advance_hours": lambda world: world.wait(timedelta(hours=2)),
    "force": lambda world: actors.forcer(world, None),
    "change_document": _change_documents,
    "lose_upload": _lose_upload,
    "add_rule": _add_rule,
    "put_again": _put_again,
    "overwrite_input": _overwrite_input,
    "delete_input": _delete_input,
}


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


def explore(scenario: Scenario, seed: int, max_histories: int, *, shrink: bool = True) -> list[History]:
    """Play random histories until one, the last, breaks a promise; the same seed gives the same histories."""
    histories, random = list[History](), Random(seed)
    while len(histories) < max_histories:
        used_id_succeeds = random.random() < 0.5
        history = play(scenario, RandomFaults(scenario, random).fault_at, used_id_succeeds)
        histories.append(history)
        if history.violation:
            return [*histories[:-1], _shrunk(history, used_id_succeeds)] if shrink else histories
    return histories


def _shrunk(history: History, used_id_succeeds: bool) -> History:
    """The history without the faults that are unnecessary to break a promise."""
    # Without a later fault, an earlier one may not be needed either.
    for step in (*sorted(history.faults, reverse=True), *sorted(history.faults)):
        fewer = {at: fault for at, fault in history.faults.items() if at != step}
        if step in history.faults:
            shorter = play(history.scenario, lambda now, *_, fewer=fewer: fewer.get(now, ""), used_id_succeeds)
            history = shorter if shorter.violation else history
    return history
