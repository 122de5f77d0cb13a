"""The cost of old manifests for the control plane: the same rounds of work in an empty ledger and in a full one."""

import statistics
import time
from collections import defaultdict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from random import Random
from typing import Any

from router.plan.handler import plan
from router.sweep.handler import sweep
from tests.chaos.processes import clients
from tests.chaos.world import World
from tests.load.lanes import load_test_settings
from tests.load.request_counts import counted_requests

BATCH_WRITE_ITEMS = 25
"""The maximum of BatchWriteItem."""
WRITERS = 16
ROUNDS = 20


@dataclass(frozen=True, slots=True)
class Timings:
    """Median seconds of one call, including the requests to the emulator's S3 and DynamoDB."""

    route: float
    micro_batch: float
    plan: float
    sweep: float
    micro_batch_cpu: float
    """CPU seconds of this process in one micro-batch."""
    requests: int
    """Sent by all rounds of all four; other load on the machine does not change this number."""


def compare_with_old_manifests(count: int, rounds: int = ROUNDS) -> tuple[Timings, Timings]:
    """Timings of the work in an empty ledger, and in one with ``count`` manifests that are DONE."""
    empty, full = (
        _MeasuredWorld(World.create(clients(), Random(0), load_test_settings(), versions=True)) for _ in range(2)
    )
    _add_old_manifests(full.world, count)
    for measured in (empty, full):
        _round(measured.world, 0, defaultdict(list))
    for number in range(1, rounds + 1):
        # The order changes with each round, so that other load on this machine affects both.
        for measured in (empty, full) if number % 2 else (full, empty):
            measured.round(number)
    return empty.timings(), full.timings()


@dataclass(slots=True)
class _MeasuredWorld:
    world: World
    seconds: defaultdict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    requests: int = 0

    def round(self, number: int) -> None:
        with counted_requests() as counts:
            _round(self.world, number, self.seconds)
        self.requests += sum(count for operation, count in counts.items() if operation != "write units")

    def timings(self) -> Timings:
        medians = {key: statistics.median(values) for key, values in self.seconds.items()}
        return Timings(**medians, requests=self.requests)


def _round(world: World, number: int, seconds: dict[str, list[float]]) -> None:
    for folder in ("orders/urgent", "orders"):
        _, message, event = world.put(f"{folder}/{number}.ndjson", b'{"a":1}\n')
        world.queue[message] = event
    seconds["route"].append(_seconds_of(lambda: world.route(list(world.queue))))
    cpu_before = time.process_time()
    seconds["micro_batch"].append(_seconds_of(lambda: world.stream(100)))
    seconds["micro_batch_cpu"].append(time.process_time() - cpu_before)
    seconds["plan"].append(_seconds_of(lambda: plan({"execution": f"execution-{number}"}, world.router())))
    seconds["sweep"].append(_seconds_of(lambda: sweep(world.router())))


def _seconds_of(work: Callable[[], Any]) -> float:
    started = time.monotonic()
    work()
    return time.monotonic() - started


def _add_old_manifests(world: World, count: int) -> None:
    """Put rows as the ledger's ``finish`` leaves them."""

    def item(number: int) -> dict[str, Any]:
        name = f"20250101T000000{number:020x}"
        row = {"pk": f"manifest#{name}", "sk": "manifest", "id": name, "state": "DONE", "lane": "stream"}
        times = {"created_at": "2025-01-01T00:00:00.000+00:00", "changed_at": "2025-01-01T00:01:00.000+00:00"}
        counts = {"partition": "orders#2025-01-01T00", "bytes": 1, "files": 1, "generation": 1, "attempt": 1}
        document = {"published": {"generation": 1, "document": {"key": f"commits/{name}", "sha256": "0" * 64}}}
        return {**row, **times, **counts, **document, "base_attempt": 0}

    def write(first: int) -> None:
        items = [{"PutRequest": {"Item": item(n)}} for n in range(first, min(first + BATCH_WRITE_ITEMS, count))]
        world.clients.dynamodb.batch_write_item(RequestItems={world.resources.ledger_table: items})

    with ThreadPoolExecutor(WRITERS) as pool:
        list(pool.map(write, range(0, count, BATCH_WRITE_ITEMS)))
