"""What old manifests cost the control plane: the same round of work in an empty ledger and in a full one."""

from __future__ import annotations

import statistics
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING, Any

from router.plan.handler import plan
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
