"""Helpers for the tests of sweep and hours: uploads, manifests in every state, markers, and what a sweep changed."""

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

from lake.commit import PendingObject
from lake.layout import complete_marker_key, lake_key, quarantine_key
from lake.ledger import ManifestRow
from lake.manifest import Lane, Partition
from router.sweep.handler import COUNTS, sweep
from router.sweep.repair import Repair
from tests.unit.lake.world import PARTITION
from tests.unit.lake.world import upload as upload_body
from tests.unit.router.conftest import Deployment
from tests.unit.router.event_bridge import FakeEventBridge

HOUR = timedelta(hours=1)


def upload(deployment: Deployment, bucket: str, key: str) -> PendingObject:
    return upload_body(deployment.raw_s3, bucket, key, key.encode())


def uploaded(deployment: Deployment, row: ManifestRow, files: int = 2) -> list[PendingObject]:
    lake = [
        upload(deployment, "lake", lake_key(row.partition, row.id, row.generation, number)) for number in range(files)
    ]
    return [*lake, upload(deployment, "quarantine", quarantine_key(row.partition, row.id, row.generation, files))]


def committed(deployment: Deployment, claim: ManifestRow, files: int = 2) -> ManifestRow:
    """A PUBLISHING manifest with no completed upload."""
    *objects, reject = uploaded(deployment, claim, files)
    return deployment.committed(claim, objects=tuple(objects), quarantine=(reject,), new_columns=("a",))


def published(deployment: Deployment, row: ManifestRow) -> ManifestRow:
    """A DONE manifest."""
    *objects, reject = uploaded(deployment, row)
    return deployment.published(row, objects=tuple(objects), quarantine=(reject,), new_columns=("a",))


def unfinished(deployment: Deployment) -> list[str]:
    found = [deployment.raw_s3.list_multipart_uploads(Bucket=bucket) for bucket in ("lake", "quarantine")]
    return [item["Key"] for answer in found for item in answer.get("Uploads", [])]


def changes(done: dict[str, int]) -> dict[str, int]:
    assert tuple(done) == tuple(COUNTS)
    return {name: number for name, number in done.items() if number}


def with_events(deployment: Deployment) -> FakeEventBridge:
    """Let the deployment send its events to the returned fake."""
    bridge = FakeEventBridge()
    deployment.services = replace(deployment.services, events=deployment.faults.wrap(bridge))
    return bridge


def listed(
    deployment: Deployment, *names: str, partition: Partition = PARTITION, lane: Lane = Lane.BATCH
) -> ManifestRow:
    """A QUEUED manifest that the ledger lists for its hour, as ``create_owner`` makes it."""
    row = deployment.queued(*names, partition=partition, lane=lane)
    deployment.ledger.partitions.list_manifest(partition, row.id, deployment.now)
    return row


def marker(deployment: Deployment, partition: Partition = PARTITION) -> dict[str, Any] | None:
    """The marker of an hour, or None if the hour has none."""
    key = complete_marker_key(partition)
    if key not in deployment.keys("lake", key):
        return None
    body: dict[str, Any] = json.loads(deployment.raw_s3.get_object(Bucket="lake", Key=key)["Body"].read())
    return body


def list_pages(
    deployment: Deployment, keys: int = 1000, before: Callable[[dict[str, Any]], object] = lambda _: None
) -> list[dict[str, Any]]:
    """Record the later requests for input pages, each page of this size; each request first goes to ``before``."""
    requests: list[dict[str, Any]] = []
    listing = deployment.raw_s3.list_object_versions

    def list_page(**request: Any) -> Any:
        requests.append(request)
        before(request)
        return listing(**request, MaxKeys=keys)

    deployment.patch.setattr(deployment.raw_s3, "list_object_versions", list_page)
    return requests


def swept(deployment: Deployment) -> dict[str, int]:
    return changes(sweep(deployment.services))


def repair(deployment: Deployment) -> Repair:
    return Repair(deployment.services, deployment.now + HOUR)
