"""The control plane alone: many old manifests beside few new ones, and a long backlog with a stubbed convert."""

from __future__ import annotations

import statistics
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from random import Random
from typing import TYPE_CHECKING, Any

from lake.commit import CommitDocument, write_commit
from lake.layout import commit_key
from lake.manifest import Lane, Manifest, ObjectVersion, new_manifest_id, write_manifest
from lake.partition import Partition
from lake.publish import roll_forward
from router.plan.handler import plan
from router.run_status.handler import run_status
from router.settle.handler import settle
from router.sweep.handler import sweep
from tests.chaos.inputs import Body
from tests.chaos.processes import clients
from tests.chaos.world import World
from tests.load.lanes import settings
from tests.load.requests import counted

if TYPE_CHECKING:
    from collections.abc import Callable

BATCH_WRITE = 25
WRITERS = 16
ROUNDS = 3


@dataclass(frozen=True, slots=True)
class Timings:
    """Median seconds of one call."""

    route: float
    micro_batch: float
    plan: float
    sweep: float
    requests: int
    """Sent by one round of all four: the measure that a busy machine does not change."""


def with_old_manifests(count: int) -> tuple[Timings, Timings]:
    """The same work in an empty ledger, and beside ``count`` manifests that are DONE."""
    world = World.create(clients(), Random(0), settings(), versions=True)
    _timings(world, "warm")
    before = _timings(world, "before")
    _add_old(world, count)
    return before, _timings(world, "after")


def _timings(world: World, name: str) -> Timings:
    taken: dict[str, list[float]] = {"route": [], "micro_batch": [], "plan": [], "sweep": []}
    for number in range(ROUNDS):
        with counted() as counts:
            _round(world, name, number, taken)
        requests = sum(count for operation, count in counts.items() if operation != "write units")
    return Timings(**{key: statistics.median(values) for key, values in taken.items()}, requests=requests)


def _round(world: World, name: str, number: int, taken: dict[str, list[float]]) -> None:
    for folder in ("orders/urgent", "orders"):
        _, message, event = world.put(f"{folder}/{name}-{number}.ndjson", Body(b'{"a":1}\n', (), ()))
        world.queue[message] = event
    taken["route"].append(_timed(lambda: world.route(list(world.queue))))
    taken["micro_batch"].append(_timed(lambda: world.stream(100)))
    taken["plan"].append(_timed(lambda: plan({"execution": f"{name}-{number}"}, world.router())))
    taken["sweep"].append(_timed(lambda: sweep(world.router())))


def _timed(work: Callable[[], Any]) -> float:
    started = time.monotonic()
    work()
    return time.monotonic() - started


def _add_old(world: World, count: int) -> None:
    """Rows as ``finish`` leaves them."""

    def item(number: int) -> dict[str, Any]:
        name = f"20250101T000000{number:020x}"
        row = {"pk": f"manifest#{name}", "sk": "manifest", "id": name, "state": "DONE", "lane": "stream"}
        times = {"created_at": "2025-01-01T00:00:00.000+00:00", "changed_at": "2025-01-01T00:01:00.000+00:00"}
        more = {"partition": "orders#2025-01-01T00", "bytes": 1, "files": 1, "generation": 1, "attempt": 1}
        document = {"published_generation": 1, "published_key": f"commits/{name}", "published_sha256": "0" * 64}
        return {**row, **times, **more, **document, "base_attempt": 0}

    def write(first: int) -> None:
        items = [{"PutRequest": {"Item": item(n)}} for n in range(first, min(first + BATCH_WRITE, count))]
        world.clients.dynamodb.batch_write_item(RequestItems={world.places.ledger_table: items})

    with ThreadPoolExecutor(WRITERS) as pool:
        list(pool.map(write, range(0, count, BATCH_WRITE)))


@dataclass(frozen=True, slots=True)
class Backlog:
    """A night over many manifests; seconds."""

    manifests: int
    runs: int
    plan: float
    stub: float
    """The stubbed conversion: claim, commit document, commit, publish of nothing."""
    status: float
    settle: float
    verdict: str

    @property
    def manifests_per_second(self) -> float:
        """Of plan, status and settle together."""
        return self.manifests / (self.plan + self.status + self.settle)


def backlog(manifests: int) -> Backlog:
    """The functions of ``overnight`` one after the other; every manifest stands in an hour of its own."""
    world = World.create(clients(), Random(0), settings(), versions=True)
    with ThreadPoolExecutor(WRITERS) as pool:
        list(pool.map(lambda number: _enqueue(world, number), range(manifests)))
    execution = "night"
    started = time.monotonic()
    planned = plan({"execution": execution}, world.router())
    plan_seconds = time.monotonic() - started
    rows = world.clients.s3.list_objects_v2(Bucket=world.places.control_bucket, Prefix=f"plans/{execution}/runs/")
    runs = [f"s3://{world.places.control_bucket}/{item['Key']}" for item in rows["Contents"]]
    assert planned["manifests"] == manifests
    stub_seconds = _timed(lambda: _stub(world))
    status_seconds = _timed(lambda: [run_status({"run": run}, world.router()) for run in runs])
    started = time.monotonic()
    verdict = settle({"execution": execution}, world.router())
    settle_seconds = time.monotonic() - started
    return Backlog(manifests, len(runs), plan_seconds, stub_seconds, status_seconds, settle_seconds, verdict["verdict"])


def _enqueue(world: World, number: int) -> None:
    hour = datetime(2025, 1, 1, tzinfo=UTC) + timedelta(hours=number)
    partition = Partition.of("orders", hour)
    file = ObjectVersion(world.places.input_bucket, f"orders/{number}", "0" * 32, 1 << 30, hour.isoformat(), "v")
    manifest = Manifest(new_manifest_id(hour), Lane.BATCH, partition, hour.isoformat(), (file,))
    write_manifest(world.clients.s3, world.places.control_bucket, manifest)
    world.ledger().manifests.enqueue(manifest)


def _stub(world: World) -> None:
    ledger, control = world.ledger(), world.places.control_bucket

    def end(name: str) -> None:
        row = ledger.manifests.get(name)
        assert row is not None
        claim = ledger.manifests.claim(row, "stub", world.clock(), timedelta(minutes=10))
        assert claim is not None
        at = world.clock().isoformat()
        document = CommitDocument(name, 1, 1, row.partition, "stub", at, (), (), (), (), 0)
        named = write_commit(world.clients.s3, control, commit_key(name, 1, 1, "stub"), document)
        ledger.manifests.commit(claim, named, world.clock())
        publishing = replace(claim.row, state=ledger.manifests.get(name).state, document=named)  # type: ignore[union-attr]
        roll_forward(world.clients.s3, ledger, control, publishing, world.clock)

    items = [row.id for row in ledger.manifests.open(Lane.BATCH, _queued())]
    with ThreadPoolExecutor(WRITERS) as pool:
        list(pool.map(end, items))


def _queued() -> Any:
    from lake.ledger import State

    return State.QUEUED
