"""What old manifests cost the control plane: the same round of work in an empty ledger and in a full one."""

from __future__ import annotations

import statistics
import time
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from random import Random
from typing import TYPE_CHECKING, Any

from router.plan.handler import plan
from router.sweep.handler import sweep
from tests.chaos.inputs import Body
from tests.chaos.processes import clients
from tests.chaos.world import World
from tests.load.lanes import settings
from tests.load.request_counts import counted

if TYPE_CHECKING:
    from collections.abc import Callable

BATCH_WRITE = 25
WRITERS = 16
ROUNDS = 20


@dataclass(frozen=True, slots=True)
class Timings:
    """Median seconds of one call; those of S3 and DynamoDB, which are the emulator's, are in them."""

    route: float
    micro_batch: float
    plan: float
    sweep: float
    micro_batch_processor: float
    """Of the micro-batch, this process's own part: seconds of its processor."""
    requests: int
    """Sent by all rounds of all four: the measure that a busy machine does not change."""


def with_old_manifests(count: int, rounds: int = ROUNDS) -> tuple[Timings, Timings]:
    """The same work in an empty ledger, and beside ``count`` manifests that are DONE, in turn."""
    empty, full = (_Measured(World.create(clients(), Random(0), settings(), versions=True)) for _ in range(2))
    _add_old(full.world, count)
    for measured in (empty, full):
        _round(measured.world, 0, defaultdict(list))
    for number in range(1, rounds + 1):
        # Who goes first changes: what else this machine does then falls on both.
        for measured in (empty, full) if number % 2 else (full, empty):
            measured.round(number)
    return empty.timings(), full.timings()


@dataclass(slots=True)
class _Measured:
    world: World
    taken: defaultdict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    requests: int = 0

    def round(self, number: int) -> None:
        with counted() as counts:
            _round(self.world, number, self.taken)
        self.requests += sum(count for operation, count in counts.items() if operation != "write units")

    def timings(self) -> Timings:
        return Timings(**{key: statistics.median(values) for key, values in self.taken.items()}, requests=self.requests)


def _round(world: World, number: int, taken: dict[str, list[float]]) -> None:
    for folder in ("orders/urgent", "orders"):
        _, message, event = world.put(f"{folder}/{number}.ndjson", Body(b'{"a":1}\n', (), ()))
        world.queue[message] = event
    taken["route"].append(_timed(lambda: world.route(list(world.queue))))
    processor = time.process_time()
    taken["micro_batch"].append(_timed(lambda: world.stream(100)))
    taken["micro_batch_processor"].append(time.process_time() - processor)
    taken["plan"].append(_timed(lambda: plan({"execution": f"night-{number}"}, world.router())))
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
        world.clients.dynamodb.batch_write_item(RequestItems={world.resources.ledger_table: items})

    with ThreadPoolExecutor(WRITERS) as pool:
        list(pool.map(write, range(0, count, BATCH_WRITE)))
