"""Helpers for the tests of ownership and requests: files with an owner, converted or not, and an answer's counts."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

from lake.ledger import ArrivalRow
from lake.manifest import Lane, Partition
from router.ownership.owner import RoutedArrival
from router.ownership.take import take_ownership
from tests.unit.lake.world import PARTITION, TOTALS, file_of
from tests.unit.lake.world import done as publish
from tests.unit.router.conftest import Deployment


def orphan(deployment: Deployment, key: str, partition: Partition, lane: Lane) -> None:
    """An arrival whose owner crashed before it wrote its manifest's row."""
    recorded_at = (deployment.now - timedelta(hours=1)).isoformat()
    deployment.ledger.arrivals.put(ArrivalRow(file_of(key), "crashed", partition, lane, "because", recorded_at))


def owned(deployment: Deployment, *names: str, lane: Lane = Lane.BATCH, partition: Partition = PARTITION) -> str:
    """Create one manifest whose files have arrival rows; return its id."""
    routed = [RoutedArrival(file_of(f"{partition.dataset}/{name}"), partition, lane, "test") for name in names]
    made = take_ownership(deployment.services, routed, {}).manifests
    (manifest,) = [manifest.id for manifest in made] or deployment.divide()
    deployment.faults.writes.clear()
    return manifest


def failed(deployment: Deployment, *names: str, partition: Partition = PARTITION, lane: Lane = Lane.BATCH) -> str:
    manifest = owned(deployment, *names, partition=partition, lane=lane)
    assert deployment.ledger.manifests.fail(deployment.row(manifest), "gave up after 3 attempts", deployment.now)
    deployment.faults.writes.clear()
    return manifest


def done(deployment: Deployment, *names: str, unreadable: bool = False, partition: Partition = PARTITION) -> str:
    manifest = owned(deployment, *names, partition=partition)
    convert(deployment, manifest, unreadable=unreadable)
    return manifest


def convert(deployment: Deployment, manifest: str, *, unreadable: bool = False) -> None:
    """Publish the current generation, as a run does, with a stub of its commit document."""
    if unreadable:
        claim = deployment.claimed(deployment.row(manifest))
        deployment.ledger.manifests.release(claim, "1 file cannot be read", deployment.now, "exclusions/e.json")
    publish(deployment, deployment.row(manifest), TOTALS if unreadable else replace(TOTALS, failed_files=0))
    deployment.faults.writes.clear()


def counts(answer: dict[str, Any]) -> dict[str, int]:
    """The counts of a request that are not zero, without sizes."""
    return {name: value for name, value in answer.items() if type(value) is int and value and name != "bytes"}
