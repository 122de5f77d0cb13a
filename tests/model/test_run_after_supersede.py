"""A batch run was given manifests by name; others may have superseded them before it begins."""

from collections.abc import Iterator
from dataclasses import replace

import pytest

from lake.manifest import Lane, read_manifest, write_manifest
from tests.model.actors import planner, played, promoter, worker
from tests.model.ownership_changes import held_once
from tests.model.world import World


@pytest.fixture
def world() -> Iterator[World]:
    world = World()
    with played(world):
        yield world


def states(world: World) -> dict[str, str]:
    """By file: lane and state of the manifest that holds it."""
    rows = world.rows()
    held = {key.split("/")[1][0]: rows[manifest] for key, manifest in held_once(world).items()}
    return {name: f"{row['lane']} {row['state']}" for name, row in sorted(held.items())}


def supersede(world: World, source: str, *parts: list[str]) -> None:
    """Into manifests of the batch lane."""
    services = world.router(None)
    row, whole = services.ledger.manifests.get(source), read_manifest(services.s3, "control", source, ("input",))
    assert row is not None
    successors = [
        replace(
            whole,
            id=f"{source}-{number}",
            lane=Lane.BATCH,
            files=tuple(file for file in whole.files if file.key.split("/")[1][0] in part),
        )
        for number, part in enumerate(parts)
    ]
    for successor in successors:
        write_manifest(services.s3, "control", successor)
    assert services.ledger.manifests.supersede([row], successors, "model", world.now)


def test_what_a_promote_left_behind_is_converted_and_what_it_took_is_the_streams(world: World) -> None:
    source = world.queued("a", "b", "c")
    promoter(world, None, ("b",))
    worker(world, None, "run", [source])
    assert states(world) == {"a": "batch DONE", "b": "stream QUEUED", "c": "batch DONE"}


def test_sources_of_one_merge_are_converted_once(world: World) -> None:
    sources = [world.queued(name) for name in "abc"]
    planner(world, None)
    worker(world, None, "run", sources)
    assert states(world) == dict.fromkeys("abc", "batch DONE")


def test_halves_of_a_run_that_died_are_converted_by_the_next_run_of_the_same_manifests(world: World) -> None:
    # Given: a poisonous manifest that a run has split before it died
    source = world.queued("a", "b")
    world.poisonous = frozenset({"orders/b.ndjson"})
    supersede(world, source, ["a"], ["b"])
    # When, Then
    worker(world, None, "next run", [source])
    assert states(world) == {"a": "batch DONE", "b": "batch FAILED"}


def test_what_went_from_the_stream_to_the_batch_lane_waits_for_the_night(world: World) -> None:
    source = world.queued("a", lane=Lane.STREAM)
    supersede(world, source, ["a"])
    worker(world, None, "stream run", [source])
    assert states(world) == {"a": "batch QUEUED"}
