"""A version whose event was lost is found, even when another version has replaced it since."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from lake.ledger import State
from lake.manifest import Lane
from router.sweep.handler import sweep

if TYPE_CHECKING:
    from tests.unit.router.conftest import Deployment


def test_a_replaced_version_whose_event_was_lost_gets_an_owner(deployment: Deployment) -> None:
    # Given a bucket with versions, and two versions of a key whose events were lost
    deployment.raw_s3.put_bucket_versioning(Bucket="input", VersioningConfiguration={"Status": "Enabled"})
    deployment.ledger.datasets.register("orders")
    for body in (b"{}\n", b'{"a":1}\n'):
        deployment.raw_s3.put_object(Bucket="input", Key="orders/a.ndjson", Body=body)
    head = deployment.raw_s3.head_object(Bucket="input", Key="orders/a.ndjson")
    deployment.now = head["LastModified"] + timedelta(hours=7)

    # When the sweep comes
    counts = sweep(deployment.services)

    # Then both are arrivals of their own
    assert counts["adopted"] == 2
    (row,) = deployment.ledger.manifests.open(Lane.BATCH, State.QUEUED)
    assert row.files == 2
    assert len(deployment.ledger.arrivals.versions("input", "orders/a.ndjson")) == 2
