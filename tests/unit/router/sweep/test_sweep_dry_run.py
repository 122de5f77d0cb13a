"""A dry run of the sweep counts what the next sweep repairs, and writes nothing."""

from datetime import timedelta

from lake.layout import lake_key
from lake.manifest import Lane
from router.ownership.owner import RoutedArrival
from router.ownership.resolve import write_intent
from router.sweep.handler import sweep
from tests.unit.lake.world import PARTITION, file_of
from tests.unit.router.conftest import Deployment
from tests.unit.router.sweep.sweeping import changes, committed, published, upload


def test_a_dry_run_says_what_the_next_sweep_does(deployment: Deployment) -> None:
    # Given: a missed file, a dead publisher, an expired lease, a lost pointer, an intent, a stray upload, old objects
    deployment.now = deployment.put("orders/missed.json")
    dead = committed(deployment, deployment.claimed(deployment.queued("a")))
    expired = deployment.claimed(deployment.queued("b")).row
    waiting = deployment.queued("c", lane=Lane.STREAM)
    arrival = RoutedArrival(file_of("orders/d"), PARTITION, Lane.BATCH, "test")
    write_intent(deployment.services, [arrival], deployment.now)
    done = deployment.queued("e")
    published(deployment, done)
    stray = lake_key(PARTITION, done.id, 1, 9)
    upload(deployment, "lake", stray)
    deployment.ledger.manifests.force(deployment.row(done.id), deployment.now)
    published(deployment, deployment.row(done.id))
    deployment.wait(timedelta(hours=7))
    deployment.faults.reset()
    # When
    told = sweep(deployment.services, dry_run=True)
    # Then
    assert deployment.faults.writes == []
    items = told.pop("items")
    for kind, name in (
        ("rolledForward", f"manifest {dead.id}"),
        ("released", f"manifest {expired.id}: the lease of run jr_1 has expired"),
        ("repointed", f"manifest {waiting.id}"),
        ("resumed", "s3://input/orders/d"),
        ("aborted", f"s3://lake/{stray}"),
        ("deleted", f"s3://lake/{lake_key(PARTITION, done.id, 1, 0)}"),
    ):
        assert f"{kind}: {name}" in items
    expected = set(changes(told))
    assert expected == {"rolledForward", "released", "repointed", "resumed", "adopted", "aborted", "deleted"}
    # And the sweep does just that, and divides what it has adopted
    assert sweep(deployment.services) == {**told, "divided": 1}
