"""What one file costs in requests and write units, on every path. A larger number here is a larger bill."""

from __future__ import annotations

import os
from random import Random
from typing import TYPE_CHECKING

import pytest

from lake.settings import BatchSettings, DatasetRule, PeakSettings, Settings, StreamSettings
from router.backfill.handler import backfill
from router.plan.handler import plan
from router.promote.handler import promote
from tests.chaos import runtime_patches
from tests.chaos.inputs import Body
from tests.chaos.processes import clients
from tests.chaos.world import World
from tests.load.control import with_old_manifests
from tests.load.requests import counted

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Iterator

    from local.cloud import LocalCloud

FILES = 40
SETTINGS = Settings(
    "load",
    datasets=(DatasetRule("orders", "orders/"),),
    peak=PeakSettings(hours=()),
    stream=StreamSettings(manifest_files=1000),
    batch=BatchSettings(manifest_files=10_000, flex=False),
)
ROUTE = {"write units": 4, "PutObject": 2, "GetItem": 2}
"""Beside one write unit for each file: manifest (2 with its index), dataset, partition; document and pointer."""
CONVERT = {"write units": 9, "PutObject": 2, "GetObject": 3, "GetItem": 4, "HeadObject": 1, "ListMultipartUploads": 2}
"""For each manifest: claim, commit and finish with their index, dataset; commit document and result document.

The stream reads a manifest's row once more, for its size.
"""
PLAN = {"write units": 10, "PutObject": 5, "GetObject": 5, "GetItem": 7}
"""The same after a plan: the night's row, three documents, and the status of the run."""


@pytest.fixture
def world(cloud: LocalCloud) -> Iterator[World]:
    os.environ.setdefault("POWERTOOLS_METRICS_NAMESPACE", "load")
    with runtime_patches.installed():
        yield World.create(clients(), Random(1), SETTINGS, versions=True)


def arrive(world: World, folder: str, files: int) -> None:
    for number in range(files):
        _, name, event = world.put(f"{folder}/{number}.ndjson", Body(b'{"a":1}\n', (), ()))
        world.queue[name] = event


def route(world: World) -> Counter[str]:
    with counted() as counts:
        world.route(list(world.queue))
    assert not world.queue
    return counts


def check(counts: Counter[str], fixed: dict[str, int], files: int = 0) -> None:
    for name, most in fixed.items():
        per_file = files if name == "write units" else 0
        assert counts[name] <= most + per_file, f"{counts[name]} {name} for {FILES} files: {dict(counts)}"


def test_a_file_costs_one_write_unit_to_own(world: World) -> None:
    for folder in ("orders", "orders/urgent"):
        # Given, when many files arrive in one batch
        arrive(world, folder, FILES)
        counts = route(world)

        # Then each costs one write unit, and the manifest a fixed number more
        check(counts, ROUTE, FILES)
        assert counts["PutItem"] == FILES + 1


def test_a_duplicate_event_costs_one_refused_write_and_one_read(world: World) -> None:
    arrive(world, "orders", FILES)
    events = dict(world.queue)
    route(world)
    world.queue.update(events)
    counts = route(world)
    assert counts["PutItem"] == FILES
    assert counts["GetItem"] <= FILES + 2
    assert counts["PutObject"] == 0


def test_the_conversion_costs_nothing_for_each_file(world: World) -> None:
    spent = []
    # The first conversion of a dataset tells the ledger its columns
    for files in (1, 2, FILES):
        # Given one manifest of few or of many files, in either lane
        for folder, lane in (("orders", "batch"), ("orders/urgent", "stream")):
            arrive(world, f"{folder}/{files}", files)
            route(world)
            with counted() as counts:
                if lane == "batch":
                    world.execution()
                else:
                    world.stream(1)
            if files > 1:
                check(counts, CONVERT if lane == "stream" else CONVERT | PLAN)
            spent.append((lane, sum(counts.values())))
    # Then the number of requests is the same
    assert spent[2:4] == spent[4:6]


def test_old_manifests_cost_no_request(cloud: LocalCloud) -> None:
    with runtime_patches.installed():
        without, beside = with_old_manifests(300, rounds=2)
    assert beside.requests == without.requests


def test_merging_a_night_costs_three_write_units_for_each_small_manifest(world: World) -> None:
    # Given ten invocations of one file each
    for number in range(10):
        arrive(world, f"orders/{number}", 1)
        route(world)
    with counted() as counts:
        world.run("plan", lambda _: plan({"execution": "night"}, world.router()))
    assert counts["TransactWriteItems"] == 1
    assert counts["write units"] <= 10 * 3 + 4


def test_promoting_costs_three_write_units_for_each_manifest_before_and_after(world: World) -> None:
    # Given one manifest of the batch lane
    arrive(world, "orders", FILES)
    route(world)

    # When its hour is promoted, Then it costs nothing for each file
    with counted() as counts:
        world.run("promote", lambda _: promote({"dataset": "orders"}, world.router()))
    check(counts, {"write units": 6, "PutObject": 2, "GetObject": 2, "GetItem": 2, "Query": 2})

    # When two of its files are promoted by name, Then each costs one query, and their remaining fellows one manifest
    arrive(world, "orders/more", FILES)
    route(world)
    bucket = world.resources.input_bucket
    names = [f"s3://{bucket}/orders/more/{number}.ndjson" for number in range(2)]
    with counted() as counts:
        world.run("promote", lambda _: promote({"files": names}, world.router()))
    check(counts, {"write units": 9, "PutObject": 3, "GetObject": 1, "GetItem": 2, "Query": 2})


def test_files_found_by_the_sweep_cost_what_events_cost(world: World) -> None:
    # Given files whose events never came
    arrive(world, "orders", FILES)
    world.queue.clear()

    # When a sweep lists the input, Then each costs one write unit; and nothing when the next one comes by
    world.advance(hours=3)
    with counted() as counts:
        world.sweep()
    check(counts, {"write units": 4, "PutObject": 2, "ListObjectVersions": 1, "Query": 14}, FILES)
    world.advance(hours=3)
    with counted() as counts:
        world.sweep()
    check(counts, {"write units": 0, "PutObject": 1, "ListObjectVersions": 1, "Query": 14})


def test_files_found_by_a_backfill_cost_what_events_cost(world: World) -> None:
    # Given files whose events never came
    arrive(world, "orders", FILES)
    world.queue.clear()
    request = {"dataset": "orders", "from": "2000-01-01", "to": "2100-01-01"}
    event = {"action": "find", "request": request, "token": None}

    # When a backfill lists them, Then each costs one write unit; and a refused one when it is repeated
    for fixed in (4, 0):
        with counted() as counts:
            found = world.run("backfill", lambda _: backfill(event, world.router()))
        assert found is not None
        assert found["found"] == FILES
        check(counts, {"write units": fixed, "PutObject": 1, "ListObjectVersions": 1}, FILES)
