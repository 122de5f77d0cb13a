"""Whatever moves files between manifests, killed between any two of its writes, and what must stand afterwards.

The checks read the raw stores and share no code with the product.
"""

from __future__ import annotations

import json
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

from botocore.exceptions import BotoCoreError, ClientError

from lake.errors import HybridRouterError
from lake.manifest import Identity, Lane
from router.ownership.draft import RoutedArrival
from router.ownership.own import ArrivalOutcome, own
from tests.model.actors import acknowledge, planner, played, promoter, stream, sweeper, worker
from tests.model.invariants import LIVE, Watch
from tests.model.scheduler import Actor, Crash, Violation, is_read
from tests.model.world import PARTITION, SETTINGS, World

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

WHEN = ("before", "after", "asleep")
"""Killed before the n-th write; killed when it is applied and its answer has not come; asleep before it, while those
who come after it do their work, and then alive again."""
ROUNDS = 8
SMALL = replace(
    SETTINGS,
    stream=replace(SETTINGS.stream, manifest_files=2, max_attempts=1),
    batch=replace(SETTINGS.batch, max_attempts=1),
)
"""Two files are a manifest of the stream lane; one failed attempt is enough to be put down."""


@dataclass(frozen=True)
class Mover:
    """One way in which files get into another manifest."""

    prepare: Callable[[World], object]
    act: Callable[[World, Actor | None], object]
    again: Callable[[World], object]
    """Those who come after it, as they do by themselves: redelivery, the next plan, the next claim, a repetition."""
    stream: tuple[str, ...] = ()
    """Files that have to be in the stream lane then; all others in the batch lane."""
    poisonous: tuple[str, ...] = ()


@dataclass
class Death:
    """Stands in the baton's place: counts the writes of the one actor there is, and strikes at one of them."""

    watch: Watch
    number: int = 0
    when: str = ""
    meanwhile: Callable[[], object] = lambda: None
    writes: list[str] = field(default_factory=list)
    actors: dict[str, Actor] = field(default_factory=dict)
    dead: bool = False

    def call(self, _: Actor, client: Any, operation: str, request: dict[str, Any]) -> Any:
        if self.dead:
            raise Crash
        if is_read(operation):
            return getattr(client, operation)(**request)
        self.writes.append(operation)
        struck = len(self.writes) == self.number
        if struck and self.when == "before":
            self._die()
        if struck and self.when == "asleep":
            self.meanwhile()
        answer = getattr(client, operation)(**request)
        self.watch.look()
        if struck and self.when == "after":
            self._die()
        return answer

    def _die(self) -> None:
        self.dead = True
        raise Crash


def _route(world: World, actor: Actor | None) -> None:
    lanes = {"orders/c.ndjson": Lane.BATCH}
    waiting = [file for file in world.arrived if file not in world.acknowledged]
    routed = [RoutedArrival(file, PARTITION, lanes.get(file.key, Lane.STREAM), "model") for file in waiting]
    result = own(world.router(actor), routed, {})
    for file in waiting:
        if result.outcomes[Identity.of(file)] != ArrivalOutcome.LATER:
            acknowledge(world, file)


def _redeliver(world: World) -> None:
    for _ in range(3):
        world.wait(timedelta(hours=2))
        _route(world, None)
    sweeper(world, None)


def _merge_again(world: World) -> None:
    planner(world, None)


def _urgent(world: World, actor: Actor | None) -> None:
    promoter(world, actor, ("a", "b", "c"))


MOVERS = {
    "route": Mover(lambda world: world.arrive("a", "b", "c"), _route, _redeliver, stream=("a", "b")),
    "merge": Mover(lambda world: [world.queued(name) for name in "abc"], planner, _merge_again),
    "promote": Mover(
        lambda world: world.queued("a", "b", "c", "d"), _urgent, lambda world: _urgent(world, None), ("a", "b", "c")
    ),
    "poison": Mover(
        lambda world: world.queued("a", "b"),
        lambda world, actor: worker(world, actor, "worker"),
        lambda world: worker(world, None, f"next-{world.token(4)}"),
        poisonous=("b",),
    ),
    "hand-over": Mover(
        lambda world: world.queued("a", "b", lane=Lane.STREAM),
        lambda world, actor: stream(world, actor, "stream"),
        lambda world: stream(world, None, f"next-{world.token(4)}"),
        poisonous=("b",),
    ),
}


def quiet_writes(mover: Mover) -> list[str]:
    """The writes of a run in which nothing happens, which has to keep every promise as well."""
    return _play(mover, 0, "")


def kill(mover: Mover, number: int, when: str) -> None:
    """Strike at the n-th write; raises ``Violation`` where a promise is broken then or later."""
    _play(mover, number, when)


def _play(mover: Mover, number: int, when: str) -> list[str]:
    world = World()
    watch = Watch(world)
    with ExitStack() as stack:
        stack.enter_context(patch("tests.model.world.SETTINGS", SMALL))
        # So that more than one supersede is needed.
        stack.enter_context(patch("router.promote.move.MAX_SUCCESSORS", 1))
        stack.enter_context(played(world))
        mover.prepare(world)
        world.look = watch.look
        world.poisonous = frozenset(f"orders/{name}.ndjson" for name in mover.poisonous)
        world.dynamodb.catch_up()
        death: Any = Death(watch, number, when, lambda: mover.again(world))
        world.baton = death
        with suppress(Crash, HybridRouterError, BotoCoreError, ClientError):
            mover.act(world, Actor("mover", lambda: None))
        held_once(world)
        mover.again(world)
        held_once(world)
        in_their_lanes(world, mover)
        pointed(world)
        _to_the_end(world, watch)
    return list(death.writes)


def _to_the_end(world: World, watch: Watch) -> None:
    """Sweeps, streams and nights until each file is in the lake once, or FAILED alone."""
    for number in range(ROUNDS):
        world.wait(timedelta(hours=2))
        sweeper(world, None)
        stream(world, None, f"later-stream-{number}")
        planner(world, None)
        worker(world, None, f"later-{number}")
        held_once(world)
    watch.the_end()


def held_once(world: World) -> dict[str, str]:
    """No file is in two live manifests, each of which is what its document says; what was acknowledged is in one."""
    held: dict[str, str] = {}
    for identity, row in _live(world):
        body = world.document(f"manifests/{identity[:8]}/{identity}.json")
        if body is None:
            raise Violation(f"{identity} is {row['state']} and has no document")
        partition = f"{body['dataset']}#{body['date']}T{body['hour']:02d}"
        written = (body["id"], body["lane"], partition, len(body["files"]), sum(file[4] for file in body["files"]))
        if written != (identity, row["lane"], row["partition"], row["files"], row["bytes"]):
            raise Violation(f"{identity}: its document says {written}, its row {row}")
        for file in body["files"]:
            if file[1] in held:
                raise Violation(f"{file[1]} is in two live manifests: {held[file[1]]} and {identity}")
            held[file[1]] = identity
    for file in world.acknowledged:
        if held.get(file.key) not in _ends(world, file.key):
            raise Violation(f"{file.key} was acknowledged, is in {held.get(file.key)}, and its arrival leads elsewhere")
    return held


def in_their_lanes(world: World, mover: Mover) -> None:
    """Everything has arrived, and is in the lane in which it should be."""
    rows = dict(_live(world))
    lanes = {key: rows[identity]["lane"] for key, identity in held_once(world).items()}
    expected = {
        file.key: "stream" if file.key.split("/")[1].removesuffix(".ndjson") in mover.stream else "batch"
        for file in world.arrived
    }
    if lanes != expected:
        raise Violation(f"the files are in the lanes {lanes}, expected {expected}")


def pointed(world: World) -> None:
    """Every manifest that waits for the stream has a pointer that no checkpoint has seen."""
    inbox = [key for key in world.s3.buckets["control"] if key.startswith("inbox/") and key not in world.seen_pointers]
    named = {json.loads(world.s3.buckets["control"][key].body)["manifest"] for key in inbox}
    for identity, row in _live(world):
        if (row["lane"], row["state"]) == ("stream", "QUEUED") and identity not in named:
            raise Violation(f"{identity} waits for the stream without a pointer")


def _live(world: World) -> Iterator[tuple[str, dict[str, Any]]]:
    return ((identity, row) for identity, row in sorted(world.rows().items()) if row["state"] in LIVE)


def _ends(world: World, key: str) -> set[str]:
    """Where the chain from the arrival's row leads."""
    rows = world.rows()
    todo = [item["manifest"] for item in world.dynamodb.items.values() if item.get("key") == key]
    found: set[str] = set()
    while todo:
        identity = todo.pop()
        row = rows.get(identity, {})
        if row.get("state") == "SUPERSEDED":
            todo += row["superseded_by"]
        else:
            found.add(identity)
    return found
