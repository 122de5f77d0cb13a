"""What the tests of ownership and of requests share: owned files, orphans, and the counts of an answer."""

from datetime import timedelta
from typing import Any

from lake.ledger import ArrivalRow
from lake.manifest import Lane, Partition
from router.ownership.owner import RoutedArrival
from router.ownership.take import take_ownership
from tests.unit.lake.world import PARTITION, file_of
from tests.unit.router.conftest import Deployment


def orphan(deployment: Deployment, key: str, partition: Partition, lane: Lane) -> None:
    """An arrival whose owner crashed before it wrote its manifest's row."""
    recorded_at = (deployment.now - timedelta(hours=1)).isoformat()
    deployment.ledger.arrivals.put(ArrivalRow(file_of(key), "crashed", partition, lane, "because", recorded_at))


def owned(deployment: Deployment, *names: str, lane: Lane = Lane.BATCH, partition: Partition = PARTITION) -> str:
    """One manifest whose files have arrival rows; its id."""
    routed = [RoutedArrival(file_of(f"{partition.dataset}/{name}"), partition, lane, "test") for name in names]
    made = take_ownership(deployment.services, routed, {}).manifests
    (manifest,) = [manifest.id for manifest in made] or deployment.divide()
    deployment.faults.writes.clear()
    return manifest


def counts(answer: dict[str, Any]) -> dict[str, int]:
    """Counts of a request that are not zero, without sizes."""
    return {name: value for name, value in answer.items() if type(value) is int and value and name != "bytes"}
