"""A batch run starts with the names of manifests that were superseded after its plan."""

from collections.abc import Iterator
from dataclasses import replace

import pytest

from lake.manifest import Lane
from lake.manifest_document import read_manifest, write_manifest
from tests.model.actors import fake_runtime, planner, promoter, worker
from tests.model.ownership_invariants import check_owners
from tests.model.world import World


@pytest.fixture
def world() -> Iterator[World]:
    world = World()
    with fake_runtime(world):
        yield world


def states(world: World) -> dict[str, str]:
    """Lane and state of the manifest that owns each file, by the file's name."""
    rows = world.rows()
    owners = {key.split("/")[1][0]: rows[manifest] for key, manifest in check_owners(world).items()}
    return {name: f"{row['lane']} {row['state']}" for name, row in sorted(owners.items())}


def supersede(world: World, source: str, *parts: list[str]) -> None:
    """Supersede a manifest by one manifest of the batch lane for each part."""
    services = world.router(None)
    row = services.ledger.manifests.get(source)
    assert row is not None
    whole = read_manifest(services.s3, "control", row, ("input",))
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


def test_the_run_converts_remaining_files_and_leaves_promoted_ones_to_the_stream(world: World) -> None:
    source = world.queued("a", "b", "c")
    promoter(world, None, ("b",))
    worker(world, None, "run", [source])
    assert states(world) == {"a": "batch DONE", "b": "stream QUEUED", "c": "batch DONE"}


def test_sources_of_one_merge_are_converted_once(world: World) -> None:
    sources = [world.queued(name) for name in "abc"]
    planner(world, None)
    worker(world, None, "run", sources)
    assert states(world) == dict.fromkeys("abc", "batch DONE")


def test_the_next_run_converts_the_parts_that_a_dead_run_split_a_manifest_into(world: World) -> None:
    # Given: a manifest with a poisonous file, which a run has split before it died
    source = world.queued("a", "b")
    world.poisonous = frozenset({"orders/b.ndjson"})
    supersede(world, source, ["a"], ["b"])
    # When, Then
    worker(world, None, "next run", [source])
    assert states(world) == {"a": "batch DONE", "b": "batch FAILED"}


def test_a_manifest_handed_over_from_the_stream_to_the_batch_lane_waits_for_the_next_execution(world: World) -> None:
    source = world.queued("a", lane=Lane.STREAM)
    supersede(world, source, ["a"])
    worker(world, None, "stream run", [source])
    assert states(world) == {"a": "batch QUEUED"}
