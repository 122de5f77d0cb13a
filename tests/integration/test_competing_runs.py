"""Two runs and one manifest: leases keep the second run away, and fences refuse a run that wakes up too late."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from tests.integration.faults import Steps
from tests.integration.one_manifest import check_published_once, convert_with, enqueue

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import SparkSession

    from tests.integration.conversion_world import ConversionWorld


def test_two_runs_convert_the_same_manifest_at_once(world: ConversionWorld, spark: SparkSession) -> None:
    # Given
    manifest = enqueue(world)
    together = threading.Barrier(2)

    def work(run: str) -> str:
        together.wait()
        return world.convert([manifest], spark, run)[0].state

    # When
    with ThreadPoolExecutor(2) as pool:
        states = list(pool.map(work, ["run-1", "run-2"]))

    # Then
    assert "DONE" in states
    assert set(states) <= {"DONE", "HELD"}
    check_published_once(world, manifest)


def test_a_live_lease_is_held_and_a_dead_run_is_taken_over_at_once(world: ConversionWorld, spark: SparkSession) -> None:
    # Given a manifest with a live lease
    manifest = enqueue(world)
    lease = world.clock.now.replace(hour=13) - world.clock.now
    assert world.services.ledger.manifests.claim(world.row(manifest), "run-1", world.clock(), lease)

    # When / Then it is held, even from a second call of the same run
    assert world.convert([manifest], spark, "run-2")[0].state == "HELD"
    assert world.convert([manifest], spark, "run-1")[0].state == "HELD"
    world.dead_runs.add("run-1")
    assert world.convert([manifest], spark, "run-2")[0].state == "DONE"
    check_published_once(world, manifest)
    row = world.row(manifest)
    assert (row.attempt, row.owner, row.earlier_owners) == (2, "run-2", ("run-1",))


def convert_as_a_zombie(world: ConversionWorld, spark: SparkSession, wakes_before: Callable[[str], bool]) -> str:
    """A run stalls before a step for longer than its lease, and another run converts the manifest meanwhile."""
    manifest = enqueue(world)
    stalled: list[object] = []

    def fault(_number: int, name: str, call: Callable[[], Any]) -> Any:
        if not stalled and world.row(manifest).attempt and wakes_before(name):
            stalled.append(name)
            world.clock.advance(hours=1)
            assert world.convert([manifest], spark, "run-2")[0].state == "DONE"
        return call()

    (outcome,) = convert_with(world, Steps(fault), spark, manifest)
    assert stalled
    assert outcome.state == "DONE"
    return manifest


def test_a_zombie_that_wakes_before_it_writes_its_commit_document(world: ConversionWorld, spark: SparkSession) -> None:
    manifest = convert_as_a_zombie(world, spark, lambda name: name == "put_object")
    check_published_once(world, manifest)
    assert world.row(manifest).attempt == 2


def test_a_zombie_that_wakes_before_its_commit(world: ConversionWorld, spark: SparkSession) -> None:
    seen: list[str] = []

    def wakes(name: str) -> bool:
        seen.append(name)
        return name == "update_item" and "put_object" in seen

    manifest = convert_as_a_zombie(world, spark, wakes)
    check_published_once(world, manifest)
    assert world.row(manifest).attempt == 2
