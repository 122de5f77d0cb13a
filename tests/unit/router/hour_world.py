"""What the tests of hours share: manifests that the ledger lists for their hour, and markers."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from lake.layout import complete_marker_key
from lake.manifest import Lane
from router.sweep.handler import sweep
from router.sweep.repair import Repair
from tests.unit.lake.world import PARTITION
from tests.unit.router.event_bridge import FakeEventBridge
from tests.unit.router.sweep.sweeping import changes

if TYPE_CHECKING:
    from lake.ledger import ManifestRow
    from lake.manifest import Partition
    from tests.unit.router.conftest import Deployment

HOUR = timedelta(hours=1)


def with_events(deployment: Deployment) -> FakeEventBridge:
    """The deployment sends its events to what is returned."""
    bridge = FakeEventBridge()
    deployment.services = replace(deployment.services, events=deployment.faults.wrap(bridge))
    return bridge


def listed(
    deployment: Deployment, *names: str, partition: Partition = PARTITION, lane: Lane = Lane.BATCH
) -> ManifestRow:
    """A QUEUED manifest that the ledger lists for its hour, as ``enqueue_manifest`` makes it."""
    row = deployment.queued(*names, partition=partition, lane=lane)
    deployment.ledger.partitions.list_manifest(partition, row.id, deployment.now)
    return row


def marker(deployment: Deployment, partition: Partition = PARTITION) -> dict[str, Any] | None:
    """The marker of an hour; None: there is none."""
    key = complete_marker_key(partition)
    if key not in deployment.keys("lake", key):
        return None
    body: dict[str, Any] = json.loads(deployment.raw_s3.get_object(Bucket="lake", Key=key)["Body"].read())
    return body


def swept(deployment: Deployment) -> dict[str, int]:
    return changes(sweep(deployment.services))


def repair(deployment: Deployment) -> Repair:
    return Repair(deployment.services, deployment.now + HOUR)
