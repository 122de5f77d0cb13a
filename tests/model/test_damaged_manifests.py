"""A manifest document that was changed after the ledger recorded it is refused alone, and read once it is restored."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from lake.layout import manifest_key
from tests.model.actors import fake_runtime, planner, promoter, sweeper, worker
from tests.model.invariants import InvariantChecker
from tests.model.world import World

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

Body = dict[str, Any]


@pytest.fixture
def world() -> Iterator[World]:
    world = World()
    world.after_write = InvariantChecker(world).check
    with fake_runtime(world):
        yield world


def change(world: World, manifest: str, forge: Callable[[Body], object]) -> bytes:
    """Overwrite the document of a manifest by a changed one; returns the recorded document."""
    recorded = world.s3.get_object(Bucket="control", Key=manifest_key(manifest))["Body"].read()
    body = json.loads(recorded)
    forge(body)
    world.s3.put_object(Bucket="control", Key=manifest_key(manifest), Body=json.dumps(body).encode())
    world.causes.add((manifest, 1))
    return bytes(recorded)


@pytest.mark.parametrize(
    "forge",
    [
        lambda body: body["files"].pop(),
        lambda body: body["files"].append(["input", "orders/other.ndjson", None, "e", 1, "2026-11-20T09:30:00+00:00"]),
        lambda body: body["files"][0].__setitem__(0, "elsewhere"),
        lambda body: body.__setitem__("dataset", "../elsewhere"),
    ],
    ids=["removed file", "added file", "other bucket", "other dataset"],
)
def test_a_changed_document_fails_its_manifest_alone_until_it_is_restored(
    world: World, forge: Callable[[Body], object]
) -> None:
    # Given three manifests of one hour, one of them with a changed document
    damaged, *good = [world.queued(f"{name}1", f"{name}2") for name in "abc"]
    recorded = change(world, damaged, forge)
    # When all of them are planned, promoted in part, converted and swept
    planner(world, None)
    promoter(world, None, ["a1"])
    worker(world, None, "night")
    sweeper(world, None)
    # Then the others are converted, and this one has published nothing and says what to do
    rows = world.rows()
    assert [rows[manifest]["state"] for manifest in good] == ["DONE", "DONE"]
    assert rows[damaged]["state"] == "FAILED"
    assert "restore the object" in rows[damaged]["reason"]
    assert f"hybrid-router reprocess --manifest {damaged}" in rows[damaged]["reason"]
    assert not [key for bucket in ("lake", "quarantine") for key in world.s3.buckets[bucket] if damaged in key]
    # When the document is restored and the manifest reprocessed, then it is converted
    world.s3.put_object(Bucket="control", Key=manifest_key(damaged), Body=recorded)
    services = world.router(None)
    row = services.ledger.manifests.get(damaged)
    assert row is not None
    assert services.ledger.manifests.force(row, world.now)
    worker(world, None, "next night")
    assert world.rows()[damaged]["state"] == "DONE"
