"""What the tests of ownership share: files of both lanes, redelivery, faults, and who owns what."""

import json
from collections import Counter
from datetime import timedelta
from typing import Any

from aws_lambda_powertools.utilities.data_classes import SQSEvent

from lake.ledger import ArrivalRow
from lake.manifest import Lane, Partition
from lake.manifest_documents import read_manifest
from router.ownership import RoutedArrival, take_ownership
from tests.unit.lake.faults import Faults
from tests.unit.lake.world import PARTITION, file_of
from tests.unit.router.conftest import Deployment
from tests.unit.router.events import batch, message, s3_record

URGENT, ALSO_URGENT, NOT_URGENT = "orders/urgent/a.json", "orders/urgent/b.json", "clicks/c.json"
IGNORED = "orders/d.csv"
KEYS = (URGENT, ALSO_URGENT, NOT_URGENT, IGNORED)


def event(keys: tuple[str, ...] = KEYS) -> SQSEvent:
    """One message per file."""
    return batch(*(message(key, s3_record(key)) for key in keys))


def outside_peak(deployment: Deployment) -> Deployment:
    deployment.wait(timedelta(hours=12))
    return deployment


def owners(deployment: Deployment) -> Counter[str]:
    """Number of live manifests and parts that list a file; read without the product's ledger code."""
    items = deployment.dynamodb.scan(TableName="ledger")["Items"]
    found: Counter[str] = Counter()
    for item in items:
        if item["sk"] == "manifest" and item["state"] == "COLLECTED":
            key = f"parts/{item['id'][:8]}/{item['id']}.json"
            body = json.loads(deployment.raw_s3.get_object(Bucket="control", Key=key)["Body"].read())
            listed = [(file[1], dataset) for dataset, text in body["files"].items() for file in json.loads(text)]
            assert all(name.startswith(f"{dataset}/") for name, dataset in listed)
            assert item["files"] == len(listed)
            found.update(name for name, _ in listed)
        elif item["sk"] == "manifest" and item["state"] not in ("ABANDONED", "SUPERSEDED"):
            manifest = read_manifest(deployment.raw_s3, "control", deployment.row(item["id"]), ("input",))
            assert (item["files"], item["bytes"]) == (len(manifest.files), manifest.bytes)
            found.update(file.key for file in manifest.files)
            assert len({file.key.split("/")[0] for file in manifest.files} | {manifest.partition.dataset}) == 1
    return found


def drop(faults: Faults, number: int) -> None:
    faults.drop = number


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
