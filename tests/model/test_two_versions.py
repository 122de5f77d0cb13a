"""A deployment or a rollback: the code leaves manifests of an unknown format alone, and uses up no attempt."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from lake.manifest import Lane
from tests.model.actors import fake_runtime, planner, sweeper, worker
from tests.model.invariants import InvariantChecker
from tests.model.world import World

if TYPE_CHECKING:
    from collections.abc import Iterator

NEWER_FORMAT = 2


@pytest.fixture
def world() -> Iterator[World]:
    world = World()
    world.after_write = InvariantChecker(world).check
    with fake_runtime(world):
        yield world


def test_the_older_version_leaves_manifests_of_the_newer_one(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    # Given manifests of which the newer version has written some
    old = [world.queued(name) for name in "ab"]
    with monkeypatch.context() as newer:
        newer.setattr("lake.manifest.MANIFEST_FORMAT", NEWER_FORMAT)
        new = [world.queued(name) for name in "cd"]
    # When the older version plans, converts more often than a manifest has attempts, and sweeps
    planner(world, None)
    for number in range(4):
        worker(world, None, f"old{number}")
    sweeper(world, None)
    # Then its own manifests are done, and the others wait without having used up an attempt
    rows = world.rows()
    assert all(rows[manifest]["state"] in ("DONE", "SUPERSEDED") for manifest in old)
    waiting = [rows[manifest] for manifest in new]
    assert [row["state"] for row in waiting] == ["QUEUED", "QUEUED"]
    assert [row["attempt"] - row["base_attempt"] for row in waiting] == [0, 0]
    # When the newer version runs, then it converts them
    monkeypatch.setattr("lake.manifest.MANIFEST_FORMAT", NEWER_FORMAT)
    worker(world, None, "new", new)
    assert [world.rows()[manifest]["state"] for manifest in new] == ["DONE", "DONE"]
    assert world.rows()[new[0]]["lane"] == Lane.BATCH
