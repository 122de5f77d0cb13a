"""Ownership: drafts, the intent that precedes all rows, adoption, what a listing may skip, number of writes."""

import itertools
from collections import Counter
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta

import pytest
from botocore.exceptions import ReadTimeoutError
from hypothesis import given
from hypothesis import strategies as st

from lake.ledger import ArrivalRow, State
from lake.manifest import Lane, Partition
from lake.manifest_documents import read_manifest
from lake.settings import parse_settings
from lake.time import iso_utc
from router.ownership.owner import Draft, RoutedArrival, cut_drafts
from router.ownership.resolve import read_intent, without_known, write_intent
from router.ownership.take import take_ownership
from router.requests.reprocess import reprocess
from router.route.handler import route
from tests.unit.lake.faults import Crash
from tests.unit.lake.world import MORNING, PARTITION, file_of
from tests.unit.router.conftest import Deployment
from tests.unit.router.events import batch, failures, message, s3_record
from tests.unit.router.owning import orphan
from tests.unit.router.settling import done
from tests.unit.router.sweep.sweeping import listed


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
    key = "orders/d.csv"
    orphan(deployment, key, PARTITION, Lane.BATCH)
    assert failures(route(batch(message("m1", s3_record(key))), deployment.services)) == []
    assert [file.key for file in deployment.waiting_files()] == [key]


def test_an_hour_that_fails_does_not_affect_others(deployment: Deployment) -> None:
    # Given: the arrival row of the first file has no answer
    deployment.wait(timedelta(hours=12))
    deployment.faults.drop = 2
    keys = ("orders/a.json", "orders/b.json")
    times = ("2026-11-20T01:10:00.000Z", "2026-11-20T02:10:00.000Z")
    records = batch(*(message(key, s3_record(key, time=time)) for key, time in zip(keys, times, strict=True)))
    [unacknowledged] = failures(route(records, deployment.services))
    assert {file.key for file in deployment.waiting_files()} == {*keys} - {unacknowledged}


SETTINGS = parse_settings({"stage": "t", "stream": {"manifest_bytes": 100, "manifest_files": 3}})
drafted = st.lists(
    st.builds(
        lambda number, size, partition, lane, urgent: RoutedArrival(
            file_of(f"{number}", size), partition, lane, "why", urgent=urgent
        ),
        st.integers(),
        st.integers(0, 150),
        st.sampled_from([PARTITION, Partition("clicks", "2026-11-20", 9), Partition("orders", "2026-11-20", 10)]),
        st.sampled_from(list(Lane)),
        st.booleans(),
    ),
    unique_by=lambda arrival: arrival.file.key,
)


def drafts_of(arrivals: list[RoutedArrival]) -> list[Draft]:
    numbers = itertools.count()
    return cut_drafts(arrivals, SETTINGS, lambda: f"m{next(numbers)}")


@given(drafted)
def test_every_arrival_is_in_exactly_one_draft_of_its_kind(given_arrivals: list[RoutedArrival]) -> None:
    drafts = drafts_of(given_arrivals)
    held = Counter(arrival.file.key for draft in drafts for arrival in draft.arrivals)
    assert held == Counter(arrival.file.key for arrival in given_arrivals)
    assert len({draft.id for draft in drafts}) == len(drafts)
    hours = [draft.partition.stamp for draft in drafts if draft.lane == Lane.BATCH]
    assert len(hours) == len(set(hours))
    for draft in drafts:
        assert draft.arrivals
        if draft.lane == Lane.BATCH:
            assert {arrival.lane for arrival in draft.arrivals} == {Lane.BATCH}
            assert len({arrival.partition.stamp for arrival in draft.arrivals}) == 1
            continue
        kinds = {(arrival.partition, arrival.lane, arrival.urgent) for arrival in draft.arrivals}
        assert kinds == {(draft.partition, draft.lane, draft.urgent)}
        assert len(draft.arrivals) <= SETTINGS.stream.manifest_files
        size = sum(arrival.file.size for arrival in draft.arrivals)
        assert size <= SETTINGS.stream.manifest_bytes or len(draft.arrivals) == 1


def test_a_draft_is_filled_to_its_limit() -> None:
    # Given six files of half a draft each
    routed = [RoutedArrival(file_of(f"{number}", 50), PARTITION, Lane.STREAM, "why") for number in range(6)]
    drafts = drafts_of(routed)
    assert [len(draft.arrivals) for draft in drafts] == [2, 2, 2]


ARRIVALS = [
    RoutedArrival(file_of("orders/a.json"), PARTITION, Lane.BATCH, "waits for the overnight run"),
    RoutedArrival(file_of("orders/b.json"), PARTITION, Lane.STREAM, "matches urgent/*", urgent=True),
]


def test_an_intent_has_each_arrival_with_its_lane_reason_and_urgency(deployment: Deployment) -> None:
    key = write_intent(deployment.services, ARRIVALS, deployment.now)
    assert list(read_intent(deployment.services, key).arrivals) == ARRIVALS


def test_no_row_is_written_while_the_intent_has_no_answer(deployment: Deployment) -> None:
    deployment.faults.drop = 1
    with pytest.raises(ReadTimeoutError):
        take_ownership(deployment.services, ARRIVALS, {})
    assert deployment.faults.writes == ["put_object"]


def test_ignored_arrivals_need_no_intent(deployment: Deployment) -> None:
    take_ownership(deployment.services, [], {ARRIVALS[0].file: "no rule"})
    # Of the updates the first one finds no row of the reason.
    assert deployment.faults.writes == ["put_item", "update_item", "update_item"]


def test_only_arrivals_with_a_living_owner_are_known(deployment: Deployment) -> None:
    # Given one of each kind
    new, no_rule, waiting, ended, no_owner, dead, unreadable = (file_of(f"orders/{name}.json") for name in "abcdefg")
    returned = file_of("orders/h.json", version=None)
    queued, failed, damaged = (deployment.queued(name) for name in ("queued", "failed", "damaged"))
    owners = {no_rule: None, waiting: queued.id, returned: queued.id, ended: failed.id, unreadable: damaged.id}
    for file, owner in {**owners, no_owner: "20261120T093000nobody", dead: "20261120T093000abandoned"}.items():
        deployment.ledger.arrivals.put(ArrivalRow(file, owner, PARTITION, Lane.BATCH, "test", iso_utc(MORNING)))
    deployment.ledger.manifests.fail(failed, "ended", deployment.now)
    deployment.ledger.manifests.abandon("20261120T093000abandoned", deployment.now)
    deployment.damage(damaged)
    again = replace(returned, arrived_at=iso_utc(MORNING + timedelta(hours=1)))
    files = (new, no_rule, waiting, ended, no_owner, dead, unreadable, again)
    # When, Then
    arrivals = [RoutedArrival(file, PARTITION, Lane.BATCH, "test") for file in files]
    left = [arrival.file for arrival in without_known(deployment.ledger, arrivals)]
    assert left == [new, no_rule, no_owner, dead, unreadable]


@pytest.mark.parametrize("number", [1, 2, 3])
def test_an_hour_is_touched_before_a_manifest_of_it_is_queued_again(deployment: Deployment, number: int) -> None:
    # Given
    row = listed(deployment, "a.json")
    done(deployment, row, 10)
    deployment.faults.reset()
    touched = deployment.ledger.partitions.get(PARTITION).touched
    # When
    deployment.faults.crash_before = number
    with suppress(Crash):
        reprocess({"manifests": [row.id], "only": "all", "request": "again"}, deployment.services)
    deployment.faults.reset()
    # Then
    assert deployment.ledger.partitions.get(PARTITION).touched - touched == (number > 1)
    assert (deployment.row(row.id).state == State.QUEUED) == (number > 2)
