"""Streaming jobs are added and removed while manifests wait and arrive: each is converted once, none is left behind."""

from __future__ import annotations

import json
import random
from collections import Counter
from dataclasses import dataclass, field, replace
from datetime import timedelta
from itertools import count
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from lake.layout import OTHER_INBOXES, inbox, manifest_of_pointer, pointer_key
from lake.ledger.manifest_row import queued_row
from lake.manifest import Lane
from router.ownership import write_pointer
from router.sweep.pointers import renew_pointers
from router.sweep.repair import Repair
from streaming_job import main, stream
from streaming_job.inbox import find_inboxes, has_open_manifests
from streaming_job.stream import InboxStream, key_of_path, pattern_of
from tests.unit.lake.world import LEASE, PARTITION
from tests.unit.router.conftest import Deployment, new_deployment
from tests.unit.streaming_job.test_stream import context_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from lake.ledger import ManifestRow
    from lake.settings import Settings

WAITING, MORE = 550, 450
"""Manifests that wait for one job, and those that come at once when there are three."""
ROUNDS, ARRIVING = 3, 8
"""Rounds of each stage, and manifests that arrive in each of them; the pointer of one of them gets lost."""
PER_TRIGGER = 40
RUNS = count()


@dataclass
class MovingLane:
    """The stream lane over the real inboxes and ledger; a conversion is its claim."""

    deployment: Deployment
    random: random.Random = field(default_factory=lambda: random.Random(17))
    converted: Counter[str] = field(default_factory=Counter)
    rows: dict[str, ManifestRow] = field(default_factory=dict)
    """Of all manifests, as they were queued."""

    def configure(self, jobs: int) -> None:
        self.deployment.configure(stream={"jobs": jobs, "spread": "manifest"})

    def arrive(self, number: int, *, lost: int = 0) -> None:
        """Manifests that ``route`` has queued, the last ones without a pointer."""
        for position in range(number):
            manifest = self.deployment.manifest("a.json", lane=Lane.STREAM)
            self.deployment.ledger.manifests.enqueue(manifest)
            self.rows[manifest.id] = queued_row(manifest)
            # A process that dies after the row has left no pointer.
            if position < number - lost:
                write_pointer(self.deployment.services, manifest.id, PARTITION.dataset, urgent=False)

    def jobs(self) -> list[Job]:
        """A run of each job, with the settings of now."""
        settings = self.deployment.services.settings
        return [Job(self, settings, shard) for shard in settings.shards.names]

    def convert(self, context: Any, pointers: Iterable[str], *_: object, **__: object) -> list[Any]:
        for pointer in pointers:
            # Both of two jobs that have read the same pointer find the manifest QUEUED: the ledger has to refuse one.
            row = self.rows[json.loads(pointer)["manifest"]]
            if self.deployment.ledger.manifests.claim(row, context.run, self.deployment.now, LEASE):
                self.converted[row.id] += 1
        return []


class Job:
    """One run of a streaming job. It lists as Spark does: what it has read once it does not read again."""

    def __init__(self, lane: MovingLane, settings: Settings, shard: str) -> None:
        deployment = lane.deployment
        self._s3 = deployment.raw_s3
        context = context_of(deployment, f"jr_{next(RUNS)}")
        ledger = replace(deployment.ledger, stream=deployment.ledger.stream.of(shard))
        services = replace(context.services, settings=settings, ledger=ledger)
        self.stream = InboxStream(replace(context, services=services))
        self.inboxes = self.stream._inboxes = find_inboxes(services)
        self._read: set[str] = set()

    def listed(self) -> Any:
        """A micro-batch of the pointers that are there now; None: there is none."""
        requests = [{"Bucket": "control", "Prefix": prefix, "MaxKeys": PER_TRIGGER} for prefix in self.inboxes]
        pages = [self._s3.list_objects_v2(**request).get("Contents", []) for request in requests]
        keys = [item["Key"] for page in pages for item in page if item["Key"] not in self._read][:PER_TRIGGER]
        self._read.update(keys)
        rows = [(json.dumps({"manifest": manifest_of_pointer(key)}), f"s3a://control/{key}") for key in keys]
        return SimpleNamespace(collect=lambda: rows) if rows else None

    def work(self, batch: Any) -> None:
        self.stream._run_micro_batch(batch, 0)


@pytest.fixture
def lane(monkeypatch: pytest.MonkeyPatch) -> Iterator[MovingLane]:
    with new_deployment() as deployment:
        lane = MovingLane(deployment)
        monkeypatch.setattr(stream, "convert_pointers", lane.convert)
        yield lane


def under_load(lane: MovingLane, jobs: list[Job], rounds: int) -> None:
    """In each round all jobs list their inboxes, others arrive, and the jobs convert in any order."""
    for _ in range(rounds):
        batches = [(job, batch) for job in jobs if (batch := job.listed()) is not None]
        lane.arrive(ARRIVING, lost=1)
        lane.random.shuffle(batches)
        for job, batch in batches:
            job.work(batch)


def convert_all(lane: MovingLane) -> None:
    """New runs convert until no inbox has a pointer for them."""
    for job in lane.jobs():
        while (batch := job.listed()) is not None:
            job.work(batch)


def sweep(lane: MovingLane) -> None:
    """What waits for longer than ``sweep.pointer_minutes`` gets another pointer."""
    lane.deployment.wait(timedelta(minutes=16))
    repair = Repair(lane.deployment.services, lane.deployment.now + timedelta(hours=1))
    renew_pointers(repair)
    assert repair.errors == []


def test_a_thousand_waiting_manifests_move_from_one_job_to_three_to_two(lane: MovingLane) -> None:
    # Given what waits for one job, which has begun
    lane.configure(1)
    lane.arrive(WAITING)
    old = lane.jobs()
    under_load(lane, old, ROUNDS)
    # When there are three, while the run of the one is alive
    lane.configure(3)
    three = lane.jobs()
    lane.arrive(MORE)
    under_load(lane, [*old, *three], ROUNDS)
    # And then two, while the runs of the three are alive: some meet at the same pointers
    lane.configure(2)
    two = lane.jobs()
    assert len(lane.rows) - lane.converted.total() > 500
    assert two[0].inboxes == ("inbox/", "inbox-3/")
    under_load(lane, [*three, *two], ROUNDS)
    # And the runs with older settings end
    convert_all(lane)
    assert len(lane.rows) - lane.converted.total() == 3 * ROUNDS
    sweep(lane)
    convert_all(lane)
    # Then every manifest was converted once, and no inbox has a pointer
    assert lane.converted == dict.fromkeys(lane.rows, 1)
    assert lane.deployment.keys("control", "inbox") == []


@pytest.mark.parametrize("before", [1, 2])
def test_the_first_job_reads_what_a_removed_one_has_left(lane: MovingLane, before: int) -> None:
    # Given an urgent pointer and another one, each in the inbox of a shard that is no more
    lane.configure(3)
    left = [lane.deployment.queued(f"{number}.json", lane=Lane.STREAM) for number in range(2)]
    for row, urgent in zip(left, (True, False), strict=True):
        key = pointer_key(row.id, "n", urgent=urgent, shard="3")
        lane.deployment.raw_s3.put_object(Bucket="control", Key=key, Body=json.dumps({"manifest": row.id}).encode())
    assert [job.inboxes for job in lane.jobs()] == [(inbox("1"),), (inbox("2"),), (inbox("3"),)]
    # When
    lane.configure(before)
    first, *others = lane.jobs()
    # Then the first job alone reads both, and does not end before
    assert first.inboxes == ("inbox/", "inbox-3/")
    assert [job.inboxes for job in others] == [(inbox("2"),)] * (before - 1)
    assert list(first.stream._urgent._new_pointers()) == [left[0].id]
    assert has_open_manifests(first.stream._context.services, first.inboxes)
    assert not any(has_open_manifests(job.stream._context.services, job.inboxes) for job in others)


def test_spark_lists_exactly_the_inboxes_of_the_job() -> None:
    assert pattern_of("control", ["inbox/"]) == "s3a://control/{inbox}/"
    assert pattern_of("control", ["inbox/", "inbox-3/"]) == "s3a://control/{inbox,inbox-3}/"
    assert key_of_path(f"s3a://control/{OTHER_INBOXES}3/m-n.json") == "inbox-3/m-n.json"


def test_a_job_keeps_the_row_of_its_own_shard(lane: MovingLane, monkeypatch: pytest.MonkeyPatch) -> None:
    # Given
    contexts = []
    monkeypatch.setattr(main, "InboxStream", lambda context: contexts.append(context) or SimpleNamespace(run=bool))
    # When the job of the second shard runs, and then that of the first one, which has no such argument
    main.run(context_of(lane.deployment, "jr_2"), {main.SHARD: "2"})
    main.run(context_of(lane.deployment, "jr_1"), {})
    # Then
    stream = lane.deployment.ledger.stream
    assert [stream.of(shard).get().run for shard in ("1", "2")] == ["jr_1", "jr_2"]
    assert stream.get() == stream.of("1").get()
    assert [context.services.ledger.stream.shard for context in contexts] == ["2", "1"]
