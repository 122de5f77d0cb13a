"""Ownership: adoption, presumed-dead owners, ignored arrivals, number of writes."""

from collections import Counter
from collections.abc import Callable
from datetime import timedelta

import pytest

from lake.ledger import ArrivalRow, State
from lake.manifest import Lane
from lake.manifest_document import read_manifest
from lake.partition import Partition
from router.ownership import OWNER_GRACE
from router.route.handler import route
from tests.unit.lake.faults import Crash, Faults
from tests.unit.lake.world import MORNING, PARTITION, file_of
from tests.unit.router.conftest import Deployment
from tests.unit.router.events import batch, failures, message, s3_record
from tests.unit.router.owning import (
    IGNORED,
    KEYS,
    NOT_URGENT,
    assert_owned_once,
    delay,
    drop,
    event,
    lose_answer,
    orphan,
    outside_peak,
    owners,
    redeliver,
)


def test_two_crashes_in_a_row_are_adopted_twice(deployment: Deployment) -> None:
    # Given: the first crashes after the arrival rows, the second after it has adopted them
    outside_peak(deployment)
    deployment.faults.crash_before = 1 + 4 + 1
    with pytest.raises(Crash):
        route(event(), deployment.services)
    deployment.faults.reset()
    deployment.wait(2 * OWNER_GRACE)
    deployment.faults.crash_before = 1 + 4 + 2 + 3 + 1
    with pytest.raises(Crash):
        route(event(), deployment.services)
    assert deployment.faults.writes[-6:-1] == ["put_item", "put_item", "update_item", "update_item", "update_item"]
    # When
    deployment.faults.reset()
    redeliver(deployment, list(KEYS))
    # Then
    assert_owned_once(deployment)
    [row] = deployment.ledger.arrivals.versions("input", NOT_URGENT)
    assert row.reason.startswith("waits for the overnight run (adopted from ")


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


@pytest.mark.parametrize("fault", [lose_answer, drop, delay])
def test_an_adoption_without_an_answer_loses_nothing(
    deployment: Deployment, fault: Callable[[Faults, int], None]
) -> None:
    # Given: two arrivals to adopt; the first one's update is the fifth write, after the intent, two puts and the fence
    keys = ("orders/a.json", "orders/b.json")
    for key in keys:
        orphan(deployment, key, PARTITION, Lane.BATCH)
    deployment.faults.writes.clear()
    fault(deployment.faults, 5)
    # When
    unacknowledged = failures(route(event(keys), deployment.services))
    assert deployment.faults.writes[3:6] == ["put_item", "update_item", "update_item"]
    deployment.faults.deliver()
    deployment.faults.reset()
    redeliver(deployment, unacknowledged)
    # Then
    assert owners(deployment) == Counter(keys)


def test_an_invocation_that_was_presumed_dead_acknowledges_nothing(deployment: Deployment) -> None:
    # Given: another process abandons its part between its document and its row
    outside_peak(deployment)

    def meanwhile() -> None:
        [row] = deployment.ledger.arrivals.versions("input", NOT_URGENT)
        assert row.manifest is not None
        deployment.ledger.manifests.abandon(row.manifest, deployment.now)

    deployment.faults.pause = (5, meanwhile)
    # When, Then
    assert failures(route(event((NOT_URGENT,)), deployment.services)) == [NOT_URGENT]
    assert failures(route(event((NOT_URGENT,)), deployment.services)) == []
    assert owners(deployment) == Counter([NOT_URGENT])


def test_an_orphaned_arrival_is_adopted_even_when_its_key_is_ignored_now(deployment: Deployment) -> None:
    orphan(deployment, IGNORED, PARTITION, Lane.BATCH)
    assert failures(route(event((IGNORED,)), deployment.services)) == []
    assert owners(deployment) == Counter([IGNORED])


def test_a_recent_owner_without_a_row_may_be_alive(deployment: Deployment) -> None:
    row = ArrivalRow(file_of(NOT_URGENT), "slow", PARTITION, Lane.BATCH, "because", deployment.now.isoformat())
    deployment.ledger.arrivals.put(row)
    deployment.wait(OWNER_GRACE)
    assert failures(route(event((NOT_URGENT,)), deployment.services)) == [NOT_URGENT]
    assert deployment.ledger.manifests.get("slow") is None
    deployment.wait(timedelta(seconds=1))
    assert failures(route(event((NOT_URGENT,)), deployment.services)) == []
    assert deployment.row("slow").state == State.ABANDONED


def test_an_ignored_arrival_stays_ignored_while_no_rule_routes_it(deployment: Deployment) -> None:
    deployment.configure(input={"suffixes": [".csv"]})
    for _ in range(2):
        assert failures(route(event((NOT_URGENT,)), deployment.services)) == []
    assert owners(deployment) == Counter()
    [row] = deployment.ledger.arrivals.versions("input", NOT_URGENT)
    assert row.manifest is None


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
    # Then
    each = Counter(put_item=50 + 1, update_item=2, put_object=1 + 2, delete_object=1)
    assert (first, writes(deployment)) == (each + Counter(update_item=2, start_job_run=1), each)


def writes(deployment: Deployment) -> Counter[str]:
    """The writes since the last call."""
    found = Counter(deployment.faults.writes)
    deployment.faults.writes.clear()
    return found
