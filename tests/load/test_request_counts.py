"""The requests and write units of one file on every path. A larger number here is a larger bill.

docs/performance.md publishes them.
"""

import os
from collections import Counter
from collections.abc import Iterator
from random import Random

import pytest

from lake.settings import BatchSettings, DatasetRule, PeakSettings, Settings, StreamSettings
from local.cloud import LocalCloud
from router.plan.handler import plan
from router.requests.backfill import backfill
from router.requests.promote import promote
from router.sweep.handler import sweep
from tests.chaos.history import installed
from tests.chaos.world import World, clients
from tests.load.request_counts import counted_requests

FILES = 40
KNOWN_FILES = 300
SETTINGS = Settings(
    "load",
    datasets=(DatasetRule("orders", "orders/"),),
    peak=PeakSettings(hours=()),
    stream=StreamSettings(manifest_files=1000),
    batch=BatchSettings(manifest_files=10_000, engines=("glue",)),
)
LISTING_HOURS = SETTINGS.sweep.listing_hours
"""A sweep lists the input again after this time."""
ROUTE = {"write units": 5, "PutObject": 3, "GetItem": 1, "DeleteObject": 1}
"""Without the one write unit of each file: manifest and partition (2 each with the index), the list of the hour; intent
(written and deleted), document and pointer. The dataset's row is read, and written before its first manifest only."""
STREAM_START = 1
"""Write units of each run of the streaming job that is really started; nothing is written while it runs."""
CONVERT = {"write units": 9, "PutObject": 2, "GetObject": 2, "GetItem": 4, "HeadObject": 1, "ListMultipartUploads": 0}
"""For each manifest: claim, commit and finish with their index, what the dataset measured, which is read first; commit
document and result document.

The stream also reads a manifest's row for its size. Once per run, the preflight reads one manifest and one
byte of its first file, and creates and aborts one upload in the lake and one in the quarantine.
"""
DIVIDE = {"write units": 8 + 6, "PutObject": 2, "GetObject": 2, "GetItem": 3, "BatchGetItem": 2, "Query": 3}
"""For a collection of one part and one dataset: a manifest, and the collection closed, divided and done."""
PLAN = {"write units": 10, "PutObject": 5, "GetObject": 8, "GetItem": 5, "BatchGetItem": 2, "Query": 5}
"""In addition after a plan: the row of the execution, three documents, the status of the run; the job run and the
status look for the list of what was denied. The plan queries open collections and manifests, and the executions of the
last days."""
PART = {"write units": 7, "PutObject": 2, "GetItem": 0, "Query": 1, "DeleteObject": 1}
"""Without the one write unit of each file: a transaction of three small items, the collection in the index; the intent
is written and deleted."""


@pytest.fixture
def world(cloud: LocalCloud) -> Iterator[World]:
    os.environ.setdefault("POWERTOOLS_METRICS_NAMESPACE", "load")
    with installed():
        yield World.create(clients(), Random(1), SETTINGS, versions=True)


def _sum(*counts: dict[str, int]) -> dict[str, int]:
    return {name: sum(count.get(name, 0) for count in counts) for name in set().union(*counts)}


def arrive(world: World, folder: str, files: int) -> None:
    for number in range(files):
        _, name, event = world.put(f"{folder}/{number}.ndjson", b'{"a":1}\n')
        world.queue[name] = event


def route(world: World) -> Counter[str]:
    with counted_requests() as counts:
        world.route(list(world.queue))
    assert not world.queue
    return counts


def divide(world: World) -> None:
    world.run("plan", lambda _: plan({"execution": "execution-0"}, world.router()))


def check(counts: Counter[str], expected: dict[str, int], files: int = 0) -> None:
    """Assert these counts, and one more write unit for each file."""
    expected = {name: number + files * (name == "write units") for name, number in expected.items()}
    assert {name: counts[name] for name in expected} == expected


def test_a_file_costs_one_write_unit_to_own(world: World) -> None:
    arrive(world, "orders", 1)
    route(world)
    started = _sum(ROUTE, {"write units": STREAM_START})
    for folder, expected, rows in (("orders", PART, 0), ("orders/urgent", started, 1)):
        # Given a dataset that has had files, When many files arrive in one batch
        arrive(world, folder, FILES)
        counts = route(world)

        # Then each costs one write unit, and the part or the manifest adds a fixed number
        check(counts, expected, FILES)
        assert counts["PutItem"] == FILES + rows


def test_a_duplicate_event_costs_one_refused_write_and_one_read(world: World) -> None:
    arrive(world, "orders", FILES)
    events = dict(world.queue)
    route(world)
    world.queue.update(events)
    counts = route(world)
    check(counts, {"PutItem": FILES, "GetItem": FILES + 1, "PutObject": 1, "DeleteObject": 1})


def test_the_requests_of_a_conversion_do_not_depend_on_the_number_of_files(world: World) -> None:
    requests = []
    # The first conversion of a dataset writes its columns to the ledger
    for files in (1, 2, FILES):
        # Given one manifest of few or of many files, in either lane
        for folder, lane in (("orders", "batch"), ("orders/urgent", "stream")):
            arrive(world, f"{folder}/{files}", files)
            route(world)
            with counted_requests() as counts:
                if lane == "batch":
                    world.execution()
                else:
                    world.stream(1)
            if files > 1:
                check(counts, CONVERT if lane == "stream" else _sum(CONVERT | PLAN, DIVIDE))
            requests.append((lane, sum(counts.values())))
    # Then the number of requests is the same
    assert requests[2:4] == requests[4:6]


@pytest.fixture
def old_manifests(world: World) -> None:
    """Rows as ``finish`` leaves them, with more bytes than one page of a query holds."""
    for number in range(300):
        name = f"20250101T000000{number:020x}"
        row = {"pk": f"manifest#{name}", "sk": "manifest", "id": name, "state": "DONE", "lane": "stream"}
        times = {"created_at": "2025-01-01T00:00:00.000+00:00", "changed_at": "2025-01-01T00:01:00.000+00:00"}
        counts = {"partition": "orders#2025-01-01T00", "bytes": 1, "files": 1, "generation": 1, "attempt": 1}
        document = {"published": {"generation": 1, "document": {"key": f"commits/{name}", "sha256": "0" * 64}}}
        item = {**row, **times, **counts, **document, "base_attempt": 0, "reason": "x" * 4000}
        world.clients.dynamodb.put_item(TableName=world.resources.ledger_table, Item=item)


def requests_of_two_rounds(world: World) -> Counter[str]:
    """The requests of route, micro-batch, plan and sweep, once the dataset is known."""
    counts: Counter[str] = Counter()
    for number in range(3):
        arrive(world, f"orders/urgent/{number}", 1)
        arrive(world, f"orders/{number}", 1)
        with counted_requests() as found:
            world.route(list(world.queue))
            world.stream(100)
            plan({"execution": f"execution-{number}"}, world.router())
            sweep(world.router())
        counts += found if number else Counter()
    return counts


def test_old_manifests_cost_no_request(world: World, old_manifests: None) -> None:
    empty = World.create(clients(), Random(2), SETTINGS, versions=True)
    assert requests_of_two_rounds(world) == requests_of_two_rounds(empty)


def test_dividing_a_collection_costs_one_read_for_each_part(world: World) -> None:
    # Given ten invocations of one file each
    for number in range(10):
        arrive(world, f"orders/{number}", 1)
        route(world)
    with counted_requests() as counts:
        world.run("plan", lambda _: plan({"execution": "execution-1"}, world.router()))
    check(counts, {"write units": DIVIDE["write units"] + 1})
    assert counts["GetObject"] == 10 + 1


def test_promoting_costs_three_write_units_for_each_manifest_before_and_after(world: World) -> None:
    # Given one manifest of the batch lane
    arrive(world, "orders", FILES)
    route(world)
    divide(world)

    # When its hour is promoted, Then the cost does not depend on the number of files
    with counted_requests() as counts:
        world.run("promote", lambda _: promote({"dataset": "orders"}, world.router()))
    check(counts, {"write units": 6 + STREAM_START, "PutObject": 2, "GetObject": 1, "GetItem": 2, "Query": 2})

    # When two of its files are promoted by name, Then each costs one query, and the remaining files cost one manifest
    arrive(world, "orders/later", FILES)
    route(world)
    divide(world)
    bucket = world.resources.input_bucket
    names = [f"s3://{bucket}/orders/later/{number}.ndjson" for number in range(2)]
    with counted_requests() as counts:
        world.run("promote", lambda _: promote({"files": names}, world.router()))
    check(counts, {"write units": 9, "PutObject": 3, "GetObject": 2, "GetItem": 5, "Query": 2})


def test_files_found_by_the_sweep_cost_what_events_cost(world: World) -> None:
    # Given files whose events were never delivered
    arrive(world, "orders", FILES)
    world.queue.clear()

    # When a sweep lists the input, Then each costs one write unit, and nothing in the next sweep
    world.advance(hours=LISTING_HOURS)
    with counted_requests() as counts:
        world.sweep()
    check(counts, {"write units": 23, "PutObject": 5, "ListObjectVersions": 1, "BatchGetItem": 3}, FILES)
    assert counts["Query"] <= 24
    world.advance(hours=LISTING_HOURS)
    with counted_requests() as counts:
        world.sweep()
    check(counts, {"write units": 2, "PutObject": 1, "ListObjectVersions": 1})
    assert counts["Query"] <= 24


def test_files_found_by_a_backfill_cost_what_events_cost(world: World) -> None:
    # Given files whose events were never delivered
    arrive(world, "orders", FILES)
    world.queue.clear()
    request = {"dataset": "orders", "from": "2000-01-01", "to": "2100-01-01"}
    event = {"action": "find", "request": request, "token": None}

    # When a backfill lists them, Then each costs one write unit, and a share of two reads when it is repeated
    for fixed, puts, files, batches in ((9, 2, FILES, 2), (0, 0, 0, 2)):
        expected = {"write units": fixed, "PutObject": puts, "ListObjectVersions": 1, "BatchGetItem": batches}
        with counted_requests() as counts:
            found = world.run("backfill", lambda _: backfill(event, world.router()))
        assert found is not None
        assert found["found"] == FILES
        check(counts, expected, files)


def test_a_known_object_costs_a_sweep_a_fiftieth_of_a_request_and_no_write(world: World) -> None:
    # Given many objects with an owner, a third of them with a separate one, which a sweep divides
    arrive(world, "orders", KNOWN_FILES // 3 * 2)
    route(world)
    for number in range(KNOWN_FILES // 3):
        arrive(world, f"orders/alone/{number}", 1)
        route(world)
    world.advance(hours=LISTING_HOURS)
    for _ in range(2):
        world.sweep()
        world.advance(hours=LISTING_HOURS)

    # When the next sweep lists them
    with counted_requests() as counts:
        world.sweep()

    # Then it reads the rows and their owners' rows a hundred at a time; it writes only its own position
    # And it reads the row of the stream and the number of datasets
    check(counts, {"ListObjectVersions": 1, "BatchGetItem": KNOWN_FILES // 50, "GetItem": 2, "PutObject": 1})
    check(counts, {"write units": 0, "DeleteObject": 0})
    assert counts["Query"] <= 21
