"""Ownership: whatever dies, repeats or loses its answer, every file ends in exactly one manifest."""

from collections import Counter
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from aws_lambda_powertools.utilities.data_classes import SQSEvent

from lake.ledger import ArrivalRow, State
from lake.manifest import Lane, read_manifest
from lake.partition import Partition
from router.ownership import OWNER_GRACE
from router.route.handler import route
from tests.unit.lake.faults import Crash, Faults
from tests.unit.lake.world import MORNING, PARTITION, file_of
from tests.unit.router.conftest import Deployment, new_deployment
from tests.unit.router.events import batch, failures, message, s3_record

URGENT, ALSO_URGENT, PATIENT = "orders/urgent/a.json", "orders/urgent/b.json", "clicks/c.json"
UNWANTED = "orders/d.csv"
KEYS = (URGENT, ALSO_URGENT, PATIENT, UNWANTED)
WANTED = (URGENT, ALSO_URGENT, PATIENT)
WRITES = 4 + 2 * 4 + 1 + 1
"""Arrival rows; document, dataset, row and partition of two manifests; a pointer; the start of the stream."""
EVERY_WRITE = range(1, WRITES + 1)


def event(keys: tuple[str, ...] = KEYS) -> SQSEvent:
    """One message per file."""
    return batch(*(message(key, s3_record(key)) for key in keys))


def at_night(deployment: Deployment) -> Deployment:
    deployment.wait(timedelta(hours=12))
    return deployment


def redeliver(deployment: Deployment, unacknowledged: list[str]) -> None:
    """As SQS does, until nothing is left; the visibility timeout is two minutes."""
    for _ in range(6):
        if not unacknowledged:
            return
        deployment.wait(timedelta(minutes=2))
        unacknowledged = failures(route(event(tuple(unacknowledged)), deployment.services))
    pytest.fail(f"never acknowledged: {unacknowledged}")


def owners(deployment: Deployment) -> Counter[str]:
    """How many manifests that will be converted list a file; read past the product's own ledger code."""
    items = deployment.dynamodb.scan(TableName="ledger")["Items"]
    found: Counter[str] = Counter()
    for item in items:
        if item["sk"] == "manifest" and item["state"] not in ("ABANDONED", "SUPERSEDED"):
            manifest = read_manifest(deployment.raw_s3, "control", item["id"], ("input",))
            assert (item["files"], item["bytes"]) == (len(manifest.files), manifest.bytes)
            found.update(file.key for file in manifest.files)
            assert len({file.key.split("/")[0] for file in manifest.files} | {manifest.partition.dataset}) == 1
    return found


def assert_owned_once(deployment: Deployment) -> None:
    assert owners(deployment) == Counter(WANTED)
    queued = {file.id for file in deployment.ledger.manifests.open(Lane.STREAM, State.QUEUED)}
    for key in KEYS:
        [row] = deployment.ledger.arrivals.versions("input", key)
        assert (row.manifest is None) == (key == UNWANTED)
        assert row.lane is None or (row.manifest in queued) == (row.lane == Lane.STREAM)


def test_without_faults_there_are_so_many_writes() -> None:
    with new_deployment() as deployment:
        assert failures(route(event(), at_night(deployment).services)) == []
        assert len(deployment.faults.writes) == WRITES
        assert_owned_once(deployment)


@pytest.mark.parametrize("number", EVERY_WRITE)
def test_a_crash_before_any_write_loses_and_doubles_nothing(number: int) -> None:
    with new_deployment() as deployment:
        # Given: the process dies
        deployment.faults.crash_before = number
        with pytest.raises(Crash):
            route(event(), at_night(deployment).services)
        # When: SQS delivers everything again
        deployment.faults.reset()
        redeliver(deployment, list(KEYS))
        # Then
        assert_owned_once(deployment)
        assert "jr_1" in deployment.glue.runs["stream-job"]


def _lost(faults: Faults, number: int) -> None:
    faults.lose_answer_of = number


def _dropped(faults: Faults, number: int) -> None:
    faults.drop = number


def _delayed(faults: Faults, number: int) -> None:
    faults.delay = number


@pytest.mark.parametrize("fault", [_lost, _dropped, _delayed])
@pytest.mark.parametrize("number", EVERY_WRITE)
def test_a_write_without_an_answer_loses_and_doubles_nothing(fault: Callable[[Faults, int], None], number: int) -> None:
    with new_deployment() as deployment:
        # Given: one write is applied or not, now or later, and nobody hears of it
        fault(deployment.faults, number)
        unacknowledged = failures(route(event(), at_night(deployment).services))
        deployment.faults.deliver()
        deployment.faults.reset()
        assert_nothing_acknowledged_too_early(deployment, unacknowledged)
        # When
        redeliver(deployment, unacknowledged)
        # Then
        assert_owned_once(deployment)


@pytest.mark.parametrize("number", EVERY_WRITE)
def test_a_write_that_arrives_after_the_redelivery_changes_nothing(number: int) -> None:
    with new_deployment() as deployment:
        deployment.faults.delay = number
        unacknowledged = failures(route(event(), at_night(deployment).services))
        deployment.faults.delay = None
        redeliver(deployment, unacknowledged)
        deployment.faults.deliver()
        assert_owned_once(deployment)


def assert_nothing_acknowledged_too_early(deployment: Deployment, unacknowledged: list[str]) -> None:
    owned = owners(deployment)
    for key in set(WANTED) - set(unacknowledged):
        assert owned[key] == 1


@pytest.mark.parametrize("minutes", [0, 6], ids=["at once", "given up for dead"])
@pytest.mark.parametrize("number", EVERY_WRITE)
def test_two_invocations_of_the_same_events_agree(number: int, minutes: int) -> None:
    with new_deployment() as deployment:
        at_night(deployment)
        second: list[str] = []

        def meanwhile() -> None:
            deployment.wait(timedelta(minutes=minutes))
            second.extend(failures(route(event(), deployment.services)))

        # Given: an invocation that stalls before a write while another one has the same events
        deployment.faults.pause = (number, meanwhile)
        first = failures(route(event(), deployment.services))
        # Then: what either has acknowledged is owned, and the rest comes again
        assert_nothing_acknowledged_too_early(deployment, [key for key in first if key in second])
        redeliver(deployment, [key for key in first if key in second])
        assert_owned_once(deployment)


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


def orphan(deployment: Deployment, key: str, partition: Partition, lane: Lane) -> None:
    """An arrival whose owner died before its row."""
    recorded_at = (deployment.now - timedelta(hours=1)).isoformat()
    deployment.ledger.arrivals.put(ArrivalRow(file_of(key), "dead", partition, lane, "because", recorded_at))


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
