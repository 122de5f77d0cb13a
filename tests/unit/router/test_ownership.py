"""Ownership: adoption, presumed-dead owners, ignored arrivals, number of writes."""

from collections import Counter
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from lake.ledger import ArrivalRow, State
from lake.manifest import Lane, read_manifest
from lake.partition import Partition
from router.ownership import OWNER_GRACE
from router.route.handler import route
from tests.unit.lake.faults import Crash, Faults
from tests.unit.lake.world import MORNING, PARTITION, file_of
from tests.unit.router.conftest import Deployment
from tests.unit.router.events import batch, failures, message, s3_record
from tests.unit.router.owning import (
    KEYS,
    PATIENT,
    UNWANTED,
    _delayed,
    _dropped,
    _lost,
    assert_owned_once,
    at_night,
    event,
    orphan,
    owners,
    redeliver,
)


def test_two_crashes_in_a_row_are_adopted_twice(deployment: Deployment) -> None:
    # Given: the first dies after the arrival rows, the second after it has adopted them
    at_night(deployment)
    deployment.faults.crash_before = 5
    with pytest.raises(Crash):
        route(event(), deployment.services)
    deployment.faults.reset()
    deployment.wait(2 * OWNER_GRACE)
    deployment.faults.crash_before = 4 + 2 + 3 + 1
    with pytest.raises(Crash):
        route(event(), deployment.services)
    assert deployment.faults.writes[-6:-1] == ["put_item", "put_item", "update_item", "update_item", "update_item"]
    # When
    deployment.faults.reset()
    redeliver(deployment, list(KEYS))
    # Then
    assert_owned_once(deployment)
    [row] = deployment.ledger.arrivals.versions("input", PATIENT)
    assert row.reason.startswith("waits for the overnight run (adopted from ")


def test_an_adopted_arrival_keeps_its_partition_and_time(deployment: Deployment) -> None:
    # Given: the ledger saw it in another hour
    orphan(deployment, "orders/a.json", Partition("orders", "2026-11-20", 3), Lane.BATCH)
    # When
    later = s3_record("orders/a.json", time="2026-11-20T11:00:00Z")
    assert failures(route(batch(message("m1", later)), deployment.services)) == []
    # Then
    [row] = deployment.ledger.manifests.open(Lane.BATCH, State.QUEUED)
    assert str(row.partition) == "orders#2026-11-20T03"
    manifest = read_manifest(deployment.s3, "control", row.id, ("input",))
    assert manifest.files[0].arrived_at == MORNING.isoformat()
    assert deployment.row("dead").state == State.ABANDONED


@pytest.mark.parametrize("fault", [_lost, _dropped, _delayed])
def test_an_adoption_without_an_answer_loses_nothing(
    deployment: Deployment, fault: Callable[[Faults, int], None]
) -> None:
    # Given: two arrivals to adopt; the first one's update is the fourth write, after two puts and the fence
    keys = ("orders/a.json", "orders/b.json")
    for key in keys:
        orphan(deployment, key, PARTITION, Lane.BATCH)
    deployment.faults.writes.clear()
    fault(deployment.faults, 4)
    # When
    unacknowledged = failures(route(event(keys), deployment.services))
    assert deployment.faults.writes[2:5] == ["put_item", "update_item", "update_item"]
    deployment.faults.deliver()
    deployment.faults.reset()
    redeliver(deployment, unacknowledged)
    # Then
    assert owners(deployment) == Counter(keys)


def test_an_invocation_that_was_given_up_acknowledges_nothing(deployment: Deployment) -> None:
    # Given: somebody fences it off between its document and its row
    at_night(deployment)

    def meanwhile() -> None:
        [row] = deployment.ledger.arrivals.versions("input", PATIENT)
        assert row.manifest is not None
        deployment.ledger.manifests.abandon(row.manifest, deployment.now)

    deployment.faults.pause = (4, meanwhile)
    # When, Then
    assert failures(route(event((PATIENT,)), deployment.services)) == [PATIENT]
    assert failures(route(event((PATIENT,)), deployment.services)) == []
    assert owners(deployment) == Counter([PATIENT])


def test_an_ownerless_arrival_is_adopted_even_when_nobody_wants_it_any_more(deployment: Deployment) -> None:
    orphan(deployment, UNWANTED, PARTITION, Lane.BATCH)
    assert failures(route(event((UNWANTED,)), deployment.services)) == []
    assert owners(deployment) == Counter([UNWANTED])


def test_a_young_owner_without_a_row_may_still_live(deployment: Deployment) -> None:
    row = ArrivalRow(file_of(PATIENT), "slow", PARTITION, Lane.BATCH, "because", deployment.now.isoformat())
    deployment.ledger.arrivals.put(row)
    deployment.wait(OWNER_GRACE)
    assert failures(route(event((PATIENT,)), deployment.services)) == [PATIENT]
    assert deployment.ledger.manifests.get("slow") is None
    deployment.wait(timedelta(seconds=1))
    assert failures(route(event((PATIENT,)), deployment.services)) == []
    assert deployment.row("slow").state == State.ABANDONED


def test_an_ignored_arrival_stays_ignored(deployment: Deployment) -> None:
    deployment.configure(input={"suffixes": [".csv"]})
    route(event((PATIENT,)), deployment.services)
    deployment.configure()
    assert failures(route(event((PATIENT,)), deployment.services)) == []
    assert owners(deployment) == Counter()


def test_a_failed_manifest_does_not_take_others_with_it(deployment: Deployment) -> None:
    # Given: the arrival row of the first file has no answer
    at_night(deployment)
    deployment.configure(batch={"manifest_files": 1})
    deployment.faults.drop = 1
    keys = ("orders/a.json", "orders/b.json")
    [unacknowledged] = failures(route(event(keys), deployment.services))
    assert owners(deployment) == Counter({*keys} - {unacknowledged})


def test_one_write_per_file_and_four_or_five_per_manifest(deployment: Deployment) -> None:
    keys = [f"orders/{number}.json" for number in range(50)]
    route(batch(message("m1", *(s3_record(key) for key in keys))), deployment.services)
    expected: dict[str, Any] = {"put_item": 50 + 1, "put_object": 2, "update_item": 2, "start_job_run": 1}
    assert Counter(deployment.faults.writes) == Counter(expected)
