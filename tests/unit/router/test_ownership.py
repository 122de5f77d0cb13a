"""Ownership: adoption, presumed-dead owners, ignored arrivals, number of writes."""

from collections import Counter

from lake.ledger import State
from lake.manifest import Lane, Partition
from lake.manifest_documents import read_manifest
from router.route.handler import route
from tests.unit.lake.world import MORNING, PARTITION
from tests.unit.router.conftest import Deployment
from tests.unit.router.events import batch, failures, message, s3_record
from tests.unit.router.owning import (
    IGNORED,
    event,
    orphan,
    outside_peak,
    owners,
)


def test_an_adopted_arrival_keeps_its_partition_and_time(deployment: Deployment) -> None:
    # Given: the ledger saw it in another hour
    orphan(deployment, "orders/a.json", Partition("orders", "2026-11-20", 3), Lane.BATCH)
    # When
    later = s3_record("orders/a.json", time="2026-11-20T11:00:00Z")
    assert failures(route(batch(message("m1", later)), deployment.services)) == []
    # Then
    [row] = deployment.waiting()
    assert str(row.partition) == "orders#2026-11-20T03"
    manifest = read_manifest(deployment.s3, "control", row, ("input",))
    assert manifest.files[0].arrived_at == MORNING.isoformat()
    assert deployment.row("crashed").state == State.ABANDONED


def test_an_orphaned_arrival_is_adopted_even_when_its_key_is_ignored_now(deployment: Deployment) -> None:
    orphan(deployment, IGNORED, PARTITION, Lane.BATCH)
    assert failures(route(event((IGNORED,)), deployment.services)) == []
    assert owners(deployment) == Counter([IGNORED])


def test_an_hour_that_fails_does_not_affect_others(deployment: Deployment) -> None:
    # Given: the arrival row of the first file has no answer
    outside_peak(deployment)
    deployment.faults.drop = 2
    keys = ("orders/a.json", "orders/b.json")
    times = ("2026-11-20T01:10:00.000Z", "2026-11-20T02:10:00.000Z")
    records = batch(*(message(key, s3_record(key, time=time)) for key, time in zip(keys, times, strict=True)))
    [unacknowledged] = failures(route(records, deployment.services))
    assert owners(deployment) == Counter({*keys} - {unacknowledged})


def test_one_write_per_file_and_four_or_five_per_manifest(deployment: Deployment) -> None:
    # Given: the first invocation adds the dataset, and starts a streaming run, which is counted
    keys = [f"orders/{number}.json" for number in range(100)]
    route(batch(message("m1", *(s3_record(key) for key in keys[:50]))), deployment.services)
    first = writes(deployment)
    # When
    route(batch(message("m2", *(s3_record(key) for key in keys[50:]))), deployment.services)
    # Then: a manifest and its hour, and the backlog of the stream lane
    each = Counter(put_item=50 + 1, update_item=2 + 1, put_object=1 + 2, delete_object=1)
    assert (first, writes(deployment)) == (each + Counter(update_item=2, start_job_run=1), each)


def writes(deployment: Deployment) -> Counter[str]:
    """The writes since the last call."""
    found = Counter(deployment.faults.writes)
    deployment.faults.writes.clear()
    return found
