"""Ownership: drafts, the intent that precedes all rows, adoption, what a listing may skip, number of writes.

And ``ledger.keep_days``: what the ledger has forgotten is never converted twice, and never lost silently.
"""

import itertools
from collections import Counter
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from botocore.exceptions import ReadTimeoutError
from hypothesis import given
from hypothesis import strategies as st

from lake.errors import InvalidDocumentError, InvalidInputError, InvalidSettingsError, NewerDocumentError
from lake.ledger import ArrivalRow, State
from lake.ledger.arrivals import EXPIRY, arrival_key
from lake.manifest import Identity, Lane, ObjectVersion, Partition
from lake.manifest_documents import read_manifest
from lake.settings import parse_settings
from lake.settings.operation import CLOCK_MARGIN
from lake.time import iso_utc
from router.ownership.owner import Draft, RoutedArrival, cut_drafts
from router.ownership.resolve import read_intent, without_known, write_intent
from router.ownership.take import ArrivalOutcome, take_ownership
from router.requests.backfill import backfill
from router.requests.reprocess import reprocess
from router.route.handler import route, route_arrivals
from router.sweep.handler import sweep
from tests.unit.lake.faults import Crash
from tests.unit.lake.world import MORNING, PARTITION, RESOURCES, file_of
from tests.unit.router.conftest import Deployment
from tests.unit.router.events import batch, failures, message, s3_record
from tests.unit.router.owning import orphan
from tests.unit.router.settling import done
from tests.unit.router.sweep.sweeping import listed


def test_an_adopted_arrival_keeps_its_partition_and_time(deployment: Deployment) -> None:
    # Given: the ledger recorded it in another hour
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
    # Given: the write of the first file's arrival row gets no answer
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


ARRIVALS = [
    RoutedArrival(file_of("orders/a.json"), PARTITION, Lane.BATCH, "waits for the overnight run"),
    RoutedArrival(file_of("orders/b.json"), PARTITION, Lane.STREAM, "matches urgent/*", urgent=True),
]


def test_an_intent_has_each_arrival_with_its_lane_reason_and_urgency(deployment: Deployment) -> None:
    key = write_intent(deployment.services, ARRIVALS, deployment.now)
    assert list(read_intent(deployment.services, key).arrivals) == ARRIVALS


@pytest.mark.parametrize(("body", "error"), [(b"{}", InvalidDocumentError), (b'{"format": 2}', NewerDocumentError)])
def test_a_damaged_intent_is_distinguished_from_one_of_a_newer_version(
    deployment: Deployment, body: bytes, error: type[Exception]
) -> None:
    deployment.raw_s3.put_object(Bucket="control", Key="intents/i.json", Body=body)
    with pytest.raises(error, match="intents/i"):
        read_intent(deployment.services, "intents/i.json")


def test_no_row_is_written_while_the_intent_has_no_answer(deployment: Deployment) -> None:
    deployment.faults.drop = 1
    with pytest.raises(ReadTimeoutError):
        take_ownership(deployment.services, ARRIVALS, {})
    assert deployment.faults.writes == ["put_object"]


def test_ignored_arrivals_need_no_intent(deployment: Deployment) -> None:
    take_ownership(deployment.services, [], {ARRIVALS[0].file: "no rule"})
    assert deployment.faults.writes == ["put_item", "update_item"]


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
        reprocess({"manifests": [row.id], "all": True, "request": "again"}, deployment.services)
    deployment.faults.reset()
    # Then
    assert deployment.ledger.partitions.get(PARTITION).touched - touched == (number > 1)
    assert (deployment.row(row.id).state == State.QUEUED) == (number > 2)


KEEP_DAYS = 60
FILE = file_of("orders/a.json")
RULE = [{"name": "orders", "prefix": "orders/"}]


def keep(deployment: Deployment, versions: str | None = "Enabled") -> None:
    if versions:
        deployment.keep_versions(status=versions)
    deployment.configure(ledger={"keep_days": KEEP_DAYS}, datasets=RULE)


def item(deployment: Deployment, file: ObjectVersion = FILE) -> dict[str, Any] | None:
    key = arrival_key(file.bucket, file.key, file.version)
    answer: dict[str, Any] = deployment.dynamodb.get_item(TableName=RESOURCES.ledger_table, Key=key.item())
    return answer.get("Item")


def expire(deployment: Deployment, file: ObjectVersion = FILE) -> None:
    """As DynamoDB does, some time after the time in the attribute."""
    row = item(deployment, file)
    assert row is not None
    assert row[EXPIRY] <= deployment.now.timestamp()
    key = arrival_key(file.bucket, file.key, file.version)
    deployment.dynamodb.delete_item(TableName=RESOURCES.ledger_table, Key=key.item())


def outcome(deployment: Deployment, file: ObjectVersion = FILE) -> list[ArrivalOutcome]:
    return list(route_arrivals(deployment.services, [file]).outcomes.values())


def manifests(deployment: Deployment) -> int:
    return sum(1 for lane in Lane for _ in deployment.ledger.manifests.open(lane, State.QUEUED))


def test_a_row_expires_after_its_days_and_one_of_a_manifest_never(deployment: Deployment) -> None:
    keep(deployment)
    assert outcome(deployment) == [ArrivalOutcome.OWNED]
    row = item(deployment)
    assert row is not None
    assert row[EXPIRY] == int((MORNING + timedelta(days=KEEP_DAYS)).timestamp())
    [manifest] = deployment.ledger.manifests.open(Lane.STREAM, State.QUEUED)
    key = {"pk": f"manifest#{manifest.id}", "sk": "manifest"}
    assert EXPIRY not in deployment.dynamodb.get_item(TableName=RESOURCES.ledger_table, Key=key)["Item"]


@pytest.mark.parametrize("days", [KEEP_DAYS, 0, 90])
def test_an_event_that_arrives_after_its_row_has_expired_is_not_taken_and_not_acknowledged(
    deployment: Deployment, days: int
) -> None:
    # Given: a file whose row has expired, maybe after the setting was raised or switched off; no sweep has run
    keep(deployment)
    outcome(deployment)
    deployment.wait(timedelta(days=KEEP_DAYS, hours=1))
    expire(deployment)
    deployment.configure(ledger={"keep_days": days}, datasets=RULE)
    # When, Then: the message stays, and ends among the dead letters
    assert outcome(deployment) == [ArrivalOutcome.UNSETTLED]
    assert manifests(deployment) == 1
    assert item(deployment) is None
    request = {"action": "validate", "input": {"dataset": "orders", "from": PARTITION.date, "to": PARTITION.date}}
    with pytest.raises(InvalidInputError, match=r"ledger\.keep_days allows or allowed before"):
        backfill(request, deployment.services)
    # When rules no longer route it, Then it leaves no row that a later rule would adopt
    deployment.configure(ledger={"keep_days": days}, datasets=[{"name": "clicks", "prefix": "clicks/"}])
    assert outcome(deployment) == [ArrivalOutcome.IGNORED]
    assert item(deployment) is None
    # And files that arrived after it are routed whatever their age, without an expiry
    if not days:
        deployment.configure(datasets=RULE)
        later = replace(file_of("orders/b.json"), arrived_at=iso_utc(deployment.now))
        deployment.wait(timedelta(days=2 * KEEP_DAYS))
        assert outcome(deployment, later) == [ArrivalOutcome.OWNED]


def test_a_backfill_of_hours_that_may_be_forgotten_is_refused(deployment: Deployment) -> None:
    keep(deployment)
    request = {"dataset": "orders", "from": "2026-09-20", "to": "2026-11-20"}
    with pytest.raises(InvalidInputError, match=r"ledger\.keep_days .*begin with 2026-09-22T10 or a later hour"):
        backfill({"action": "validate", "input": request}, deployment.services)
    kept = {**request, "from": "2026-09-22T10"}
    assert backfill({"action": "validate", "input": kept}, deployment.services)["from"] == "2026-09-22T10"


def test_a_backfill_continues_when_its_first_hour_is_forgotten_meanwhile(deployment: Deployment) -> None:
    # Given: a valid request that begins with the first retained hour, and a file of that hour
    keep(deployment)
    modified = deployment.put("orders/old.json")
    hour = f"{modified:%Y-%m-%dT%H}"
    deployment.now = modified + timedelta(days=KEEP_DAYS) - CLOCK_MARGIN - timedelta(hours=1)
    given = {"dataset": "orders", "from": hour, "to": hour}
    request = backfill({"action": "validate", "input": given}, deployment.services)
    # When, then: it does not wait for an owner of the file, which may have been converted
    deployment.wait(timedelta(hours=2))
    found = backfill({"action": "find", "request": request, "token": None}, deployment.services)
    assert (found["token"], found["waitSeconds"], found["recorded"]) == (None, 0, 0)
    assert manifests(deployment) == 0


def test_a_sweep_after_a_long_pause_takes_recent_files_only(deployment: Deployment) -> None:
    # Given: an object that the ledger does not know, older than its retention, and a new one
    keep(deployment)
    modified = deployment.put("orders/old.json")
    deployment.now = modified - timedelta(hours=1)
    sweep(deployment.services)
    deployment.now = modified + timedelta(days=KEEP_DAYS)
    # When
    sweep(deployment.services)
    # Then
    assert manifests(deployment) == 0


@pytest.mark.parametrize("table", ["ledger", "input"])
@pytest.mark.parametrize(
    ("overnight", "least"),
    [("cron(0 22 * * ? *)", 35), ("cron(0 22 L * ? *)", 72), ("cron(0 22 1 1 ? *)", 374)],
    ids=["daily", "monthly", "yearly"],
)
def test_the_days_must_exceed_every_look_back_and_the_wait_of_a_file(table: str, overnight: str, least: int) -> None:
    body = {"stage": "dev", "schedule": {"overnight": overnight}}
    with pytest.raises(InvalidSettingsError, match=rf"{table}\.keep_days = {least - 1} is wrong: .* at least {least}"):
        parse_settings({**body, table: {"keep_days": least - 1}})
    parse_settings({**body, table: {"keep_days": least}})


def test_an_intent_that_names_a_forgotten_file_is_kept(deployment: Deployment) -> None:
    # Given: an intent whose file got no row, found long after; the write after backlog, days and intent is lost
    keep(deployment)
    deployment.faults.reset()
    deployment.faults.drop = 4
    assert outcome(deployment) == [ArrivalOutcome.UNSETTLED]
    deployment.faults.reset()
    deployment.wait(timedelta(days=KEEP_DAYS))
    # When
    sweep(deployment.services)
    # Then
    assert manifests(deployment) == 0
    assert len(deployment.keys("control", "intents/")) == 1


def test_the_row_of_repaired_lines_never_expires(deployment: Deployment) -> None:
    # Given: a file of the control bucket, whose resubmission is repeated at each new export of its lines
    keep(deployment)
    file = replace(file_of("resubmissions/a.ndjson"), bucket="control")
    arrival = RoutedArrival(file, PARTITION, Lane.BATCH, "repaired")
    take_ownership(deployment.services, [arrival], {})
    deployment.wait(timedelta(days=KEEP_DAYS, hours=1))
    # When, Then
    row = item(deployment, file)
    assert row is not None
    assert EXPIRY not in row
    assert take_ownership(deployment.services, [arrival], {}).outcomes == {Identity.of(file): ArrivalOutcome.DUPLICATE}


@pytest.mark.parametrize("versions", ["Suspended", None])
def test_the_sweep_reports_a_bucket_without_versions_whose_rows_should_expire(
    deployment: Deployment, versions: str | None
) -> None:
    keep(deployment, versions)
    with pytest.raises(InvalidSettingsError, match=r"ledger\.keep_days = 60 is wrong: .*input .*Enable versioning"):
        sweep(deployment.services)
