"""What the tests of reprocess share: manifests that have ended, and requests."""

from dataclasses import replace
from typing import Any

from lake.manifest import Lane, Manifest, Partition, new_manifest_id
from lake.manifest_documents import write_manifest
from router.requests.reprocess import reprocess
from tests.unit.lake.world import PARTITION, TOTALS, file_of
from tests.unit.lake.world import done as publish
from tests.unit.router.conftest import Deployment
from tests.unit.router.owning import owned


def failed(deployment: Deployment, *names: str, partition: Partition = PARTITION, lane: Lane = Lane.BATCH) -> str:
    manifest = owned(deployment, *names, partition=partition, lane=lane)
    fail(deployment, manifest)
    return manifest


def done(
    deployment: Deployment,
    *names: str,
    unreadable: bool = False,
    partition: Partition = PARTITION,
    lane: Lane = Lane.BATCH,
) -> str:
    manifest = owned(deployment, *names, partition=partition, lane=lane)
    convert(deployment, manifest, unreadable=unreadable)
    return manifest


def fail(deployment: Deployment, manifest: str) -> None:
    assert deployment.ledger.manifests.fail(deployment.row(manifest), "gave up after 3 attempts", deployment.now)
    deployment.faults.writes.clear()


def convert(deployment: Deployment, manifest: str, *, unreadable: bool = False) -> None:
    """Publish the current generation, as a run does, from a stand-in for its commit document."""
    if unreadable:
        claim = deployment.claimed(deployment.row(manifest))
        deployment.ledger.manifests.release(claim.row, "1 file cannot be read", deployment.now, "exclusions/e.json")
    publish(deployment, deployment.row(manifest), TOTALS if unreadable else replace(TOTALS, failed_files=0))
    deployment.faults.writes.clear()


def superseded(deployment: Deployment, manifest: str, *parts: tuple[str, ...]) -> list[str]:
    """The manifest's files in successors of their own; their ids."""
    row, now = deployment.row(manifest), deployment.now
    files = (tuple(file_of(f"orders/{name}") for name in part) for part in parts)
    successors = [Manifest(new_manifest_id(now), Lane.BATCH, row.partition, now.isoformat(), part) for part in files]
    for item in successors:
        write_manifest(deployment.raw_s3, "control", item)
    assert deployment.ledger.manifests.supersede(row, successors, "poison", deployment.now)
    deployment.faults.writes.clear()
    return [item.id for item in successors]


def ask(deployment: Deployment, *names: str, request: str = "request-1", **fields: Any) -> dict[str, Any]:
    files = {"files": [f"s3://input/orders/{name}" for name in names]} if names else {}
    return reprocess({"request": request, **files, **fields}, deployment.services)


def generations(deployment: Deployment, *manifests: str) -> list[tuple[str, int]]:
    rows = [deployment.row(manifest) for manifest in manifests]
    return [(row.state, row.generation) for row in rows]
