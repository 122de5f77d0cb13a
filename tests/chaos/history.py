"""One seeded history: files, events, runs and faults at random, then repairs, then the invariants."""

from __future__ import annotations

import secrets
import threading
import time
from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING

import transform.lease
from tests.chaos.fault_space import DATASETS, combinations, settings
from tests.chaos.injection import Fault
from tests.chaos.inputs import Input, body
from tests.chaos.world import World

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.chaos.processes import Clients

ROUNDS = 14
RENEWAL_SECONDS = 0.02


@dataclass(frozen=True, slots=True)
class Report:
    """What a history has shown."""

    seed: int
    fired: tuple[Fault, ...]
    violations: tuple[str, ...]
    log: tuple[str, ...]


def run_history(clients: Clients, seed: int) -> Report:
    """The same seed gives the same history."""
    random = Random(seed)
    world = World.create(clients, random, settings(random), versions=random.random() < 0.7)
    tokens = Random(seed)
    original, renewals = secrets.token_hex, transform.lease.RENEWALS_PER_LEASE
    secrets.token_hex = lambda nbytes=None: tokens.randbytes(nbytes or 32).hex()
    try:
        violations = tuple(_History(world, seed).play())
    finally:
        secrets.token_hex, transform.lease.RENEWALS_PER_LEASE = original, renewals
    return Report(seed, tuple(world.fired), violations, tuple(world.log))


class _History:
    def __init__(self, world: World, seed: int) -> None:
        self._world = world
        self._pause = threading.Event()
        self._random = world.random
        self._primary = combinations()[seed % len(combinations())]
        self._tricks = self._needed(self._primary[0])
        if self._primary[0] == "renew":
            transform.lease.RENEWALS_PER_LEASE = int(world.settings.batch.lease_seconds / RENEWAL_SECONDS)
            world.before_tasks = self._await_renewal

    def play(self) -> Iterator[str]:
        world, random = self._world, self._random
        world.meanwhile = self._others
        for number in range(random.randint(2, 6)):
            self._arrive(number)
        self._arm()
        for step in self._steps():
            step()
        world.log.append("repairs")
        yield from self._repair()
        yield from (f"after the repairs: {text}" for text in world.checker.violations(world.inputs))
        if self._force_failed():
            yield from self._repair()
            yield from (f"after forcing what failed: {text}" for text in world.checker.violations(world.inputs))

    def _needed(self, point: str) -> set[str]:
        """What has to happen for a point to be reached at all."""
        random = self._random
        chosen = {
            trick for trick in ("broken file", "force", "orphan", "vanish", "failing task") if random.random() < 0.15
        }
        return chosen | {
            "exclusions": {"broken file"},
            "release": {"broken file"},
            "abort upload": {"broken file", "failing task"},
            "adopt": {"orphan"},
            "abandon": {"orphan"},
            "fail": {"vanish"},
            "force": {"force"},
            "delete object": {"force"},
            "supersede": {"small manifests"},
        }.get(point, set())

    def _await_renewal(self) -> None:
        """Tasks of real size last for longer than a renewal takes to come."""
        before = self._world.counts.get("renew", 0)
        deadline = time.monotonic() + 1
        while self._world.counts.get("renew", 0) == before and time.monotonic() < deadline:
            self._pause.wait(RENEWAL_SECONDS)

    def _arrive(self, number: int) -> None:
        world, random = self._world, self._random
        urgent = random.choice(["", "urgent/"])
        key = f"{random.choice(DATASETS)}/{urgent}file {number}.ndjson"
        truncated = "broken file" in self._tricks and (number == 0 or random.random() < 0.2)
        content = body(random, f"f{number}", truncated=truncated)
        version, name, event = world.put(key, content)
        entry = Input(key, version, len(content.data), content.rows, content.rejects, content.readable)
        world.queue[name] = event
        if random.random() < 0.12:
            again = body(random, f"g{number}")
            version, other, event = world.put(key, again)
            # Without versions the first one is gone before anybody has read it.
            world.inputs.append(entry if world.versions else entry.lost())
            entry = Input(key, version, len(again.data), again.rows, again.rejects)
            world.queue[other] = event
            if world.versions and random.random() < 0.3:
                world.log.append(f"the event {name} is lost")
                del world.queue[name]
        elif random.random() < 0.08 and len(world.queue) > 1:
            world.log.append(f"the event {name} is lost")
            del world.queue[name]
        elif random.random() < 0.2:
            world.queue[f"{name}-again"] = {**event, "messageId": f"{name}-again"}
        world.inputs.append(entry)

    def _arm(self) -> None:
        random, world = self._random, self._world
        point, when, action = self._primary
        world.faults.append(Fault(point, when, 1, action))
        if "orphan" in self._tricks:
            world.faults.append(Fault("enqueue", "before", 1, "kill"))
        if "failing task" in self._tricks:
            world.faults += [Fault("upload part", "after", number, "raise") for number in (1, 2)]
        for _ in range(random.randint(0, 3)):
            point, when, action = random.choice(combinations())
            world.faults.append(Fault(point, when, random.randint(1, 4), action))

    def _steps(self) -> list[Callable[[], None]]:
        random, world = self._random, self._world
        work = [
            lambda: world.stream(random.randint(1, 4)),
            lambda: world.night(twice=random.random() < 0.3),
            world.sweep,
            lambda: world.advance(minutes=random.choice([1, 6, 20])),
            world.seen.clear,
            self._lose_pointer,
            self._route_some,
            self._promote,
        ]
        steps = [self._route_some, self._route_some]
        steps += random.choices(work, weights=[5, 4, 2, 3, 1, 1, 2, 3], k=random.randint(3, 7))
        if "vanish" in self._tricks:
            steps.insert(random.randint(2, len(steps)), self._vanish)
        if "force" in self._tricks:
            steps += [self._force_any, world.night]
        return steps

    def _others(self) -> None:
        """What happens while somebody sleeps."""
        random, world = self._random, self._world
        for _ in range(random.randint(1, 3)):
            work = [lambda: world.stream(4), world.night, world.sweep, self._route_some, self._force_any, self._promote]
            random.choice(work)()

    def _route_some(self) -> None:
        names = list(self._world.queue)
        self._random.shuffle(names)
        if names:
            self._world.route(names[: self._random.randint(1, len(names))])

    def _promote(self) -> None:
        """Somebody makes a few files urgent, whatever has become of them."""
        world, random = self._world, self._random
        keys = sorted({entry.key for entry in world.inputs})
        chosen = random.sample(keys, min(len(keys), random.randint(1, 3)))
        world.promote([f"s3://{world.resources.input_bucket}/{key}" for key in chosen])

    def _lose_pointer(self) -> None:
        world = self._world
        control = world.resources.control_bucket
        for item in world.clients.s3.list_objects_v2(Bucket=control, Prefix="inbox/").get("Contents", [])[:1]:
            world.clients.s3.delete_object(Bucket=control, Key=item["Key"])

    def _vanish(self) -> None:
        """A run dies between its commit and its first completion, and somebody aborts its uploads."""
        world = self._world
        world.faults.append(Fault("completion", "before", world.counts.get("completion", 0) + 1, "kill"))
        world.stream(1)
        world.night()
        for bucket in (world.resources.lake_bucket, world.resources.quarantine_bucket):
            for item in world.clients.s3.list_multipart_uploads(Bucket=bucket).get("Uploads", []):
                world.clients.s3.abort_multipart_upload(Bucket=bucket, Key=item["Key"], UploadId=item["UploadId"])

    def _force_any(self) -> None:
        done = sorted(name for name, state in self._states().items() if state in ("DONE", "FAILED"))
        if done:
            self._force(self._random.choice(done))

    def _force_failed(self) -> bool:
        failed = sorted(name for name, state in self._states().items() if state == "FAILED")
        for name in failed:
            self._force(name)
        return bool(failed)

    def _force(self, manifest: str) -> None:
        world = self._world

        def work(_: str) -> None:
            row = world.ledger().manifests.get(manifest)
            if row is not None and row.state in ("DONE", "FAILED"):
                world.ledger().manifests.force(row, world.clock())

        world.run("force", work)

    def _repair(self) -> Iterator[str]:
        """Redelivery, sweeps and runs until nothing happens any more, and one sweep after the grace period."""
        world = self._world
        for _ in range(ROUNDS):
            fired = len(world.fired)
            world.advance(hours=3)
            if world.queue:
                world.route(list(world.queue))
            world.sweep()
            world.stream(1000)
            world.night()
            open_ones = [name for name, state in self._states().items() if state in ("QUEUED", "RUNNING", "PUBLISHING")]
            if not world.queue and not open_ones and len(world.fired) == fired:
                world.advance(hours=3)
                world.sweep()
                if len(world.fired) == fired:
                    return
        yield f"not quiet after {ROUNDS} rounds of repairs: {len(world.queue)} events, open: {open_ones}"

    def _states(self) -> dict[str, str]:
        return {item["id"]: item["state"] for item in self._world.items() if item["pk"].startswith("manifest#")}
