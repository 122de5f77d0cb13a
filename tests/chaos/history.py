"""One seeded history: files, events, runs and faults at random, then repairs, then the checks."""

import os
import secrets
import threading
import time
import types
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache
from random import Random
from typing import Any

import botocore.endpoint
import pytest

import transform.clients
import transform.run_task
from router.telemetry import logger, metrics
from tests.chaos import injection
from tests.chaos.checker import TERMINAL
from tests.chaos.injection import Fault, conditions_for, fault_space
from tests.chaos.inputs import DATASETS, UNREADABLE, Input, random_body, random_settings
from tests.chaos.world import Clients, World, clients
from tests.model.fake_spark import inline_pools

MAX_REPAIR_ROUNDS = 14
RENEWAL_SECONDS = 0.02
"""Interval between renewals of a lease, in histories that inject faults into them."""


@dataclass(frozen=True, slots=True)
class Report:
    seed: int
    fired: tuple[Fault, ...]
    violations: tuple[str, ...]
    log: tuple[str, ...]
    inputs: int = 0
    """Number of object versions that arrived."""
    unpublished: int = 0
    """Object versions whose manifest was FAILED after the repairs, before it was reprocessed."""


def run_history(clients: Clients, seed: int) -> Report:
    """Play the history of this seed; the same seed gives the same history."""
    random = Random(seed)
    world = World.create(clients, random, random_settings(random), versions=random.random() < 0.7)
    tokens = Random(seed)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(secrets, "token_hex", lambda nbytes=None: tokens.randbytes(nbytes or 32).hex())
        history = _History(world, seed, patch)
        violations = tuple(history.play())
    counts = (len(world.inputs), history.unpublished)
    return Report(seed, tuple(world.fired), violations, tuple(world.log), *counts)


class _History:
    def __init__(self, world: World, seed: int, patch: pytest.MonkeyPatch) -> None:
        self._world = world
        self._pause = threading.Event()
        self._random = world.random
        self.unpublished = 0
        self._primary = fault_space()[seed % len(fault_space())]
        self._conditions = conditions_for(self._primary[0], self._random)
        if self._primary[0] == "renew":
            renewals = int(world.settings.batch.lease_seconds / RENEWAL_SECONDS)
            patch.setattr("transform.claim_manifest.RENEWALS_PER_LEASE", renewals)
            world.before_tasks = self._await_renewal

    def play(self) -> Iterator[str]:
        world, random = self._world, self._random
        world.while_stalled = self._concurrent_work
        for number in range(random.randint(2, 6)):
            self._arrive(number)
        self._add_faults()
        for step in self._steps():
            step()
        world.log.append("repairs")
        yield from self._repair()
        checker = world.checker
        found = checker.violations(world.inputs, self._may_fail, world.shown())
        yield from (f"after the repairs: {text}" for text in found)
        self.unpublished = checker.unpublished
        fired = len(world.fired)
        if self._reprocess_failed():
            yield from self._repair()
            # Without another fault nothing may fail a second time: everything is published.
            may_fail = self._may_fail if len(world.fired) > fired else lambda _: False
            found = world.checker.violations(world.inputs, may_fail, world.shown())
            yield from (f"after reprocessing FAILED manifests: {text}" for text in found)

    def _may_fail(self, row: dict[str, Any]) -> bool:
        """Whether its uploads were lost, or faults have ended all attempts that its lane allows."""
        world = self._world
        if "lost uploads" in self._conditions and "disappeared before completion" in str(row.get("reason")):
            return True
        tries = row["attempt"] - row["base_attempt"]
        return world.settings.batch.max_attempts <= tries <= len(world.fired)

    def _await_renewal(self) -> None:
        """Wait for the next renewal (at most 1 s): tasks of production size last longer than a renewal interval."""
        renewals = self._world.counts.get("renew", 0)
        deadline = time.monotonic() + 1
        while self._world.counts.get("renew", 0) == renewals and time.monotonic() < deadline:
            self._pause.wait(RENEWAL_SECONDS)

    def _arrive(self, number: int) -> None:
        world, random = self._world, self._random
        urgent = random.choice(["", "urgent/"])
        key = f"{random.choice(DATASETS)}/{urgent}file {number}.ndjson"
        truncated = "broken file" in self._conditions and (number == 0 or random.random() < 0.2)
        content = random_body(random, f"f{number}", truncated=truncated)
        version, name, event = world.put(key, content.data)
        entry = Input(key, version, content)
        world.queue[name] = event
        if random.random() < 0.12:
            second = random_body(random, f"g{number}")
            version, second_name, event = world.put(key, second.data)
            # A bucket without versions loses the first content before it is read.
            world.inputs.append(entry if world.versions else replace(entry, body=UNREADABLE))
            entry = Input(key, version, second)
            world.queue[second_name] = event
            if world.versions and random.random() < 0.3:
                world.log.append(f"the event {name} is lost")
                del world.queue[name]
        elif random.random() < 0.08 and len(world.queue) > 1:
            world.log.append(f"the event {name} is lost")
            del world.queue[name]
        elif random.random() < 0.2:
            world.queue[f"{name}-duplicate"] = {**event, "messageId": f"{name}-duplicate"}
        world.inputs.append(entry)

    def _add_faults(self) -> None:
        random, world = self._random, self._world
        point, when, action = self._primary
        world.faults.append(Fault(point, when, 1, action))
        if "orphan" in self._conditions:
            world.faults.append(Fault("enqueue", "before", 1, "kill"))
        if "failing task" in self._conditions:
            world.faults += [Fault("upload part", "after", number, "raise") for number in (1, 2)]
        for _ in range(random.randint(0, 3)):
            point, when, action = random.choice(fault_space())
            world.faults.append(Fault(point, when, random.randint(1, 4), action))

    def _steps(self) -> list[Callable[[], None]]:
        random, world = self._random, self._world
        work = [
            lambda: world.stream(random.randint(1, 4)),
            lambda: world.execution(duplicate_runs=random.random() < 0.3),
            self._sweep,
            lambda: world.advance(minutes=random.choice([1, 6, 20])),
            self._lose_pointer,
            self._route_some,
            self._promote,
        ]
        steps = [self._route_some, self._route_some]
        steps += random.choices(work, weights=[5, 4, 2, 3, 1, 2, 3], k=random.randint(3, 7))
        if "lost uploads" in self._conditions:
            steps.insert(random.randint(2, len(steps)), self._lose_uploads)
        if "force" in self._conditions:
            steps += [self._reprocess_any, world.execution]
        return steps

    def _concurrent_work(self) -> None:
        random, world = self._random, self._world
        work = [lambda: world.stream(4), world.execution, self._sweep, self._route_some]
        work += [self._reprocess_any, self._promote]
        for _ in range(random.randint(1, 3)):
            random.choice(work)()

    def _route_some(self) -> None:
        names = list(self._world.queue)
        self._random.shuffle(names)
        if names:
            self._world.route(names[: self._random.randint(1, len(names))])

    def _sweep(self) -> None:
        self._world.sweep()
        self._world.tables()

    def _promote(self) -> None:
        world, random = self._world, self._random
        keys = sorted({entry.key for entry in world.inputs})
        chosen = random.sample(keys, min(len(keys), random.randint(1, 3)))
        world.promote([f"s3://{world.resources.input_bucket}/{key}" for key in chosen])

    def _lose_pointer(self) -> None:
        world = self._world
        control = world.resources.control_bucket
        for item in world.clients.s3.list_objects_v2(Bucket=control, Prefix="inbox/").get("Contents", [])[:1]:
            world.clients.s3.delete_object(Bucket=control, Key=item["Key"])

    def _lose_uploads(self) -> None:
        """A run dies between its commit and its first completion, and its uploads are aborted."""
        world = self._world
        world.faults.append(Fault("completion", "before", world.counts.get("completion", 0) + 1, "kill"))
        world.stream(1)
        world.execution()
        for bucket in (world.resources.lake_bucket, world.resources.quarantine_bucket):
            for item in world.clients.s3.list_multipart_uploads(Bucket=bucket).get("Uploads", []):
                world.clients.s3.abort_multipart_upload(Bucket=bucket, Key=item["Key"], UploadId=item["UploadId"])

    def _reprocess_any(self) -> None:
        done = sorted(name for name, state in self._states().items() if state in ("DONE", "FAILED"))
        if done:
            self._world.reprocess([self._random.choice(done)])

    def _reprocess_failed(self) -> bool:
        failed = sorted(name for name, state in self._states().items() if state == "FAILED")
        if failed:
            self._world.reprocess(failed)
        return bool(failed)

    def _repair(self) -> Iterator[str]:
        """Redelivery, sweeps and runs until no work is left, and one sweep after the grace period."""
        world = self._world
        for _ in range(MAX_REPAIR_ROUNDS):
            fired = len(world.fired)
            world.advance(hours=3)
            if world.queue:
                world.route(list(world.queue))
            world.sweep()
            world.stream(1000)
            world.execution()
            world.tables()
            unfinished = [name for name, state in self._states().items() if state not in TERMINAL]
            unfinished += [str(row.id) for row in world.ledger().collections.open() if row.parts]
            if not world.queue and not unfinished and len(world.fired) == fired:
                world.advance(hours=3)
                # The first sweep requests a batch that expires snapshots; after it their files are deleted.
                self._sweep()
                world.sweep()
                if len(world.fired) == fired:
                    return
        yield (
            f"work is left after {MAX_REPAIR_ROUNDS} rounds of repairs: {len(world.queue)} events, open: {unfinished}"
        )

    def _states(self) -> dict[str, str]:
        return {item["id"]: item["state"] for item in self._world.items() if item["pk"].startswith("manifest#")}


@contextmanager
def installed() -> Iterator[None]:
    """Histories are fast and repeatable in the block: no back-off, no threads of pools, clients created once."""
    level = logger.log_level
    changes = [
        *injection.patches(),
        (botocore.endpoint, "time", types.SimpleNamespace(**{**vars(time), "sleep": lambda _: None})),
        (transform.run_task, "s3_client", cache(transform.clients.s3_client)),
        (metrics, "add_metric", lambda **_: None),
    ]
    logger.setLevel("CRITICAL")
    try:
        # The n-th request is always the same one.
        with pytest.MonkeyPatch.context() as patch, inline_pools():
            for owner, name, value in changes:
                patch.setattr(owner, name, value)
            yield
    finally:
        logger.setLevel(level)


def connect_to(environment: Mapping[str, str]) -> None:
    """Send every AWS request of this process to the local cloud of ``environment``; silence logs and metrics."""
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        del os.environ[name]
    os.environ.update(environment)
    logger.setLevel("CRITICAL")
    metrics.add_metric = lambda **_: None  # type: ignore[method-assign]


def play(seed: int) -> Report:
    with installed():
        return run_history(clients(), seed)
