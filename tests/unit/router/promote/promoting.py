"""What the tests of promote share: owned files, requests, and what is live afterwards."""

from typing import Any

from lake.layout import INBOX, URGENT, manifest_of_pointer
from lake.ledger import ManifestRow, State
from lake.manifest import Lane, Manifest, Partition
from lake.manifest_documents import read_manifest
from router.ownership import RoutedArrival, take_ownership
from router.requests.promote import promote
from tests.unit.lake.world import PARTITION, file_of
from tests.unit.router.conftest import Deployment


def owned(deployment: Deployment, *names: str, lane: Lane = Lane.BATCH, partition: Partition = PARTITION) -> str:
    """One manifest whose files have arrival rows; its id."""
    files = [file_of(f"{partition.dataset}/{name}") for name in names]
    routed = [RoutedArrival(file, partition, lane, "test") for file in files]
    made = take_ownership(deployment.services, routed, {}).manifests
    (manifest,) = [manifest.id for manifest in made] or deployment.divide()
    deployment.faults.writes.clear()
    return manifest


def ask(deployment: Deployment, *names: str, **fields: Any) -> dict[str, Any]:
    files = {"files": [f"s3://input/orders/{name}" for name in names]} if names else {}
    return promote({**files, **fields}, deployment.services)


def counts(answer: dict[str, Any]) -> dict[str, int]:
    """Counts that are not zero."""
    return {name: value for name, value in answer.items() if isinstance(value, int) and value}


def live(deployment: Deployment) -> dict[Lane, list[list[str]]]:
    """Names of the files of QUEUED manifests by lane, as rows and documents have them."""
    found: dict[Lane, list[list[str]]] = {}
    for lane in Lane:
        rows = deployment.ledger.manifests.open(lane, State.QUEUED)
        found[lane] = sorted(
            sorted(file.key.split("/")[-1] for file in document(deployment, row).files) for row in rows
        )
    return found


def document(deployment: Deployment, row: ManifestRow) -> Manifest:
    manifest = read_manifest(deployment.raw_s3, "control", row, ("input",))
    assert (manifest.lane, manifest.partition) == (row.lane, row.partition)
    return manifest


def pointed(deployment: Deployment) -> set[str]:
    """Manifests of the urgent pointers: a promoted file does not wait behind those of peak hours."""
    return {manifest_of_pointer(key) or "" for key in deployment.keys("control", f"{INBOX}{URGENT}")}
