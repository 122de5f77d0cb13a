"""Streaming jobs are added and removed while manifests wait and arrive: each is converted once, none is left behind."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass, field, replace
from datetime import timedelta
from itertools import count
from types import SimpleNamespace
from typing import Any

import pytest

from lake.layout import manifest_of_pointer
from lake.ledger import ManifestRow
from lake.manifest import Lane
from lake.settings import parse_settings
from router.ownership import RoutedArrival, take_ownership
from router.sweep.manifests import renew_pointers
from router.sweep.repair import Repair
from streaming_job import stream
from streaming_job.inbox import find_inboxes
from streaming_job.stream import InboxStream
from tests.model.fake_s3 import FakeS3
from tests.model.world import LEASE, PARTITION, World
from tests.unit.streaming_job.test_stream import context_of

WAITING = 1000
ROUNDS, ARRIVING = 4, 20
"""Rounds of each stage, and files that arrive in each of them; the pointer of one of them gets lost."""
PER_TRIGGER = 40
PAGE = 10_000
RUNS = count()


@dataclass
class MovingLane:
    """The stream lane over the real code of ownership, inboxes and ledger; a conversion is its claim."""

    world: World
    random: random.Random = field(default_factory=lambda: random.Random(17))
    queued: list[str] = field(default_factory=list)
    """Ids of all manifests."""
    converted: Counter[str] = field(default_factory=Counter)
    listed: dict[tuple[str, str], ManifestRow] = field(default_factory=dict)
    """By run and manifest: the row when the run listed its pointer."""

    def configure(self, jobs: int) -> None:
        settings = {"stage": "test", "stream": {"jobs": jobs, "manifest_files": 1}}
        self.world.settings = parse_settings(settings)

    def pointers(self) -> list[str]:
        return [key for key in self.world.s3.buckets["control"] if key.startswith("inbox")]

    def arrive(self, number: int) -> None:
        """Files that are routed, each into a manifest of its own."""
        files = self.world.arrive(*(f"{len(self.queued) + position}" for position in range(number)))
        routed = [RoutedArrival(file, PARTITION, Lane.STREAM, "peak") for file in files]
        self.queued += [manifest.id for manifest in take_ownership(self.world.router(None), routed, {}).manifests]

    def jobs(self) -> list[Job]:
        """A run of each job, with the settings of now."""
        return [Job(self, shard) for shard in self.world.settings.shards.names]

    def convert(self, context: Any, manifests: list[str], **_: object) -> list[Any]:
        for manifest in manifests:
            row = self.listed[context.run, manifest]
            if context.services.ledger.manifests.claim(row, context.run, self.world.now, LEASE):
                self.converted[row.id] += 1
        return []


class Job:
    """One run of a streaming job. It lists as Spark does: what it has read once it does not read again."""

    def __init__(self, lane: MovingLane, shard: str) -> None:
        services = lane.world.router(None)
        ledger = replace(services.ledger, stream=services.ledger.stream.of(shard))
        world: Any = SimpleNamespace(
            raw_s3=services.s3, ledger=ledger, resources=services.resources, clock=lane.world.clock
        )
        self._lane, self._run = lane, f"jr_{next(RUNS)}"
        context = context_of(world, self._run)
        self._services = replace(context.services, settings=services.settings)
        self._stream = InboxStream(replace(context, services=self._services))
        self.inboxes = self._stream._inboxes = find_inboxes(self._services)
        self._read: set[str] = set()

    def listed(self) -> Any:
        """A micro-batch of the pointers that are there now; None: there is none.

        Both of two jobs that list the same pointer find its manifest QUEUED: the ledger has to refuse one of them.
        """
        s3: Any = self._services.s3
        pages = [s3.list_objects_v2(Bucket="control", Prefix=prefix, MaxKeys=PAGE) for prefix in self.inboxes]
        found = [item["Key"] for page in pages for item in page.get("Contents", [])]
        keys = [key for key in found if key not in self._read][:PER_TRIGGER]
        self._read.update(keys)
        for manifest in map(manifest_of_pointer, keys):
            row = self._services.ledger.manifests.get(manifest or "")
            assert row is not None
            self._lane.listed[self._run, row.id] = row
        return SimpleNamespace(collect=lambda: [(f"s3a://control/{key}",) for key in keys]) if keys else None

    def work(self, batch: Any) -> None:
        self._stream._run_micro_batch(batch, 0)


@pytest.fixture
def lane(monkeypatch: pytest.MonkeyPatch) -> MovingLane:
    lane = MovingLane(World())
    monkeypatch.setattr(FakeS3, "PAGE_SIZE", PAGE)
    monkeypatch.setattr(stream, "convert_manifests", lane.convert)
    return lane


def under_load(lane: MovingLane, jobs: list[Job]) -> None:
    """In each round all jobs list their inboxes, others arrive, and the jobs convert in any order."""
    for _ in range(ROUNDS):
        batches = [(job, batch) for job in jobs if (batch := job.listed()) is not None]
        before = set(lane.pointers())
        lane.arrive(ARRIVING)
        # As if the writer of one pointer had died before.
        del lane.world.s3.buckets["control"][min(set(lane.pointers()) - before)]
        lane.random.shuffle(batches)
        for job, batch in batches:
            job.work(batch)


def convert_all(lane: MovingLane) -> None:
    """New runs convert until no inbox has a pointer for them."""
    for job in lane.jobs():
        while (batch := job.listed()) is not None:
            job.work(batch)


def sweep(lane: MovingLane) -> None:
    """A manifest that waits for longer than ``POINTER_MINUTES`` gets another pointer."""
    lane.world.wait(timedelta(hours=1))
    repair = Repair(lane.world.router(None), lane.world.now + timedelta(hours=1))
    renew_pointers(repair)
    assert repair.errors == []


def test_a_thousand_waiting_manifests_move_from_one_job_to_three_to_two(lane: MovingLane) -> None:
    # Given what waits for one job, which has begun
    lane.configure(1)
    lane.arrive(WAITING)
    old = lane.jobs()
    under_load(lane, old)
    # When there are three, and as much waits again, while the run of the one is alive
    lane.configure(3)
    lane.arrive(WAITING)
    three = lane.jobs()
    under_load(lane, [*old, *three])
    assert {key.partition("/")[0] for key in lane.pointers()} == {"inbox", "inbox-2", "inbox-3"}
    # And then two, while the runs of the three are alive: some meet at the same pointers
    lane.configure(2)
    two = lane.jobs()
    assert two[0].inboxes == ("inbox/", "inbox-3/")
    assert len(lane.queued) - lane.converted.total() > WAITING
    under_load(lane, [*three, *two])
    # And the runs with older settings end
    convert_all(lane)
    assert len(lane.queued) - lane.converted.total() == 3 * ROUNDS
    sweep(lane)
    convert_all(lane)
    # Then every manifest was converted once, also where two jobs had read its pointer, and no inbox has a pointer
    assert len(lane.listed) > len(lane.queued)
    assert lane.converted == dict.fromkeys(lane.queued, 1)
    assert lane.pointers() == []
