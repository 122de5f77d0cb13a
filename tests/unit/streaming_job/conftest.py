"""A streaming run whose conversions only record their arguments, over an emulated inbox and ledger."""

import json
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pytest

from lake.layout import INBOX, manifest_of_pointer, pointer_key
from lake.ledger import State
from lake.manifest import Lane
from lake.settings import parse_settings
from streaming_job import micro_batch, stream
from streaming_job.micro_batch import PORTIONS
from streaming_job.stream import InboxStream
from tests.unit.lake.world import World
from transform.give_up import EnvironmentFault
from transform.outcome import ConversionOutcome
from transform.task_model import ConversionContext

PATIENCE_SECONDS = 60
NO_ANSWER = EnvironmentFault("AWS could not be reached", "wait", passing=True)


def context_of(world: World, run: str = "jr_1", **settings: Any) -> ConversionContext:
    workers = SimpleNamespace(size=lambda: 1)
    executors = SimpleNamespace(getExecutorMemoryStatus=lambda: workers)
    spark: Any = SimpleNamespace(sparkContext=SimpleNamespace(_jsc=SimpleNamespace(sc=lambda: executors)))
    parsed = parse_settings({"stage": "test", **settings})
    clients = (world.raw_s3, world.ledger, world.resources, parsed, "eu-central-1")
    return ConversionContext(spark, *clients, run, world.clock, bool, lambda _: None)


@dataclass
class StreamLane:
    """A run, its inbox, and its conversions; some of them wait for ``gate``."""

    world: World
    gate: threading.Event = field(default_factory=threading.Event)
    begun: list[str] = field(default_factory=list)
    pools: dict[str, str | None] = field(default_factory=dict)
    states: dict[str, list[str]] = field(default_factory=dict)
    """Outcomes of the conversions of a manifest; by default it is DONE."""
    error: Exception | None = None
    unanswered: bool = False
    lines: list[str] = field(default_factory=list)
    slow: set[str] = field(default_factory=set)
    """Manifests whose conversion waits for ``gate``."""
    slow_begun: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))
    numbers: int = 0

    def __post_init__(self) -> None:
        self.start(2)

    def start(self, max_workers: int) -> None:
        """A new run. With two workers, each portion is one manifest of 1 GiB, which takes 27 s of a core."""
        context = context_of(self.world, stream={"max_workers": max_workers})
        self.context = replace(context, log=self.lines.append, wait=lambda _: None)
        self.run = InboxStream(self.context)

    def convert(self, manifests: list[str], context: ConversionContext) -> list[ConversionOutcome]:
        self.begun += manifests
        self.pools |= dict.fromkeys(manifests, context.pool)
        with self.run._changed:
            self.run._changed.notify_all()
        if self.slow.intersection(manifests):
            self.slow_begun.release()
            assert self.gate.wait(PATIENCE_SECONDS)
        if self.error is not None:
            raise self.error
        found = []
        for manifest in manifests:
            state = (self.states.get(manifest) or [State.DONE]).pop(0)
            if state == State.DONE:
                self.world.ledger.manifests.fail(self.world.row(manifest), "ended", self.world.now)
            found.append(ConversionOutcome(manifest, state, fault=NO_ANSWER if self.unanswered else None))
        return found

    def put(self, *, urgent: bool = False, size: int = 1 << 30) -> str:
        """A manifest with its pointer, each a second younger than the previous one."""
        self.numbers += 1
        manifest = self.world.manifest(f"{self.numbers}.json", lane=Lane.STREAM)
        name = f"20261120T{self.numbers:06d}{'0' * 20}"
        files = tuple(replace(file, size=size) for file in manifest.files)
        manifest = type(manifest)(name, Lane.STREAM, manifest.partition, f"{self.numbers:06d}", files, urgent)
        self.world.enqueued(manifest)
        self.point(name, urgent=urgent)
        return name

    def point(self, manifest: str, *, urgent: bool = False) -> None:
        """Put a pointer to the manifest, in addition to any that it has."""
        key = pointer_key(manifest, f"{len(self.pointers()):04d}", urgent=urgent)
        self.world.raw_s3.put_object(Bucket="control", Key=key, Body=json.dumps({"manifest": manifest}).encode())

    def pointers(self) -> list[str | None]:
        """The manifest of each pointer."""
        return [manifest_of_pointer(key) for key in self.world.keys("control", INBOX)]

    def batch(self) -> None:
        self.run._run_micro_batch(Mock(), 0)

    def read(self) -> None:
        """A micro-batch, and the end of its portions."""
        self.batch()
        self.end_portions()

    def look(self) -> None:
        """One look for urgent pointers, and the end of its portions."""
        self.run.look_for_urgent()
        self.end_portions()

    def end_portions(self) -> None:
        self.run._threads.shutdown(wait=True)
        self.run._threads = ThreadPoolExecutor()

    def wait_until_open(self, number: int) -> None:
        with self.run._changed:
            assert self.run._changed.wait_for(lambda: len(self.run._open) == number, PATIENCE_SECONDS)

    def fill(self) -> threading.Thread:
        """Begin a micro-batch with more slow files than are converted in parallel, each too large for a portion."""
        self.run._max_open = 2 * PORTIONS
        self.slow = {self.put(size=1 << 50) for _ in range(PORTIONS + 1)}
        batch = threading.Thread(target=self.batch)
        batch.start()
        self.wait_until_open(PORTIONS)
        return batch


@pytest.fixture
def lane(world: World, monkeypatch: pytest.MonkeyPatch) -> Iterator[StreamLane]:
    lane = StreamLane(world)
    monkeypatch.setattr(micro_batch, "convert", lane.convert)
    monkeypatch.setattr(micro_batch, "check_environment", lambda *_: None)
    monkeypatch.setattr(stream, "PATIENCE_SHARE", 0)
    yield lane
    lane.gate.set()
    lane.run._threads.shutdown(wait=True)
