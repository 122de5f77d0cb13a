"""``ledger.keep_days``: what the ledger has forgotten is never converted a second time, and never lost silently."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from lake.errors import InvalidInputError, InvalidSettingsError
from lake.ledger import State
from lake.ledger.arrivals import EXPIRY, arrival_key
from lake.manifest import Identity, Lane, ObjectVersion
from lake.settings import parse_settings
from lake.settings.operation import CLOCK_MARGIN
from lake.time import iso_utc
from router.ownership.owner import RoutedArrival
from router.ownership.take import ArrivalOutcome, take_ownership
from router.requests.backfill import backfill
from router.route.handler import route_arrivals
from router.sweep.handler import sweep
from tests.unit.lake.world import MORNING, PARTITION, RESOURCES, file_of
from tests.unit.router.conftest import Deployment

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
    """As DynamoDB does, some time after the attribute's time has passed."""
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
def test_an_event_that_comes_after_its_row_has_expired_is_not_taken_and_not_acknowledged(
    deployment: Deployment, days: int
) -> None:
    # Given: a file whose row has expired, perhaps by a setting that is raised or switched off now; no sweep has run
    keep(deployment)
    outcome(deployment)
    deployment.wait(timedelta(days=KEEP_DAYS, hours=1))
    expire(deployment)
    deployment.configure(ledger={"keep_days": days}, datasets=RULE)
    # When, Then: it stays with its message, which ends among the dead letters
    assert outcome(deployment) == [ArrivalOutcome.UNSETTLED]
    assert manifests(deployment) == 1
    assert item(deployment) is None
    request = {"action": "validate", "input": {"dataset": "orders", "from": PARTITION.date, "to": PARTITION.date}}
    with pytest.raises(InvalidInputError, match=r"ledger\.keep_days allows, or has allowed"):
        backfill(request, deployment.services)
    # When rules do not route it any more, Then it leaves no row that a later rule would adopt
    deployment.configure(ledger={"keep_days": days}, datasets=[{"name": "clicks", "prefix": "clicks/"}])
    assert outcome(deployment) == [ArrivalOutcome.IGNORED]
    assert item(deployment) is None
    # And files that have come since are taken however old they get, without an expiry
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


def test_a_backfill_goes_on_when_its_first_hour_is_forgotten_meanwhile(deployment: Deployment) -> None:
    # Given: a valid request that begins with the first hour that is kept, and a file of it
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
    # Given: an object that the ledger does not know, older than what it remembers, and a new one
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
def test_the_days_must_be_longer_than_what_looks_back_and_than_a_file_waits(
    table: str, overnight: str, least: int
) -> None:
    body = {"stage": "dev", "schedule": {"overnight": overnight}}
    with pytest.raises(InvalidSettingsError, match=rf"{table}\.keep_days = {least - 1} is wrong: .* at least {least}"):
        parse_settings({**body, table: {"keep_days": least - 1}})
    parse_settings({**body, table: {"keep_days": least}})


def test_an_intent_that_names_a_forgotten_file_is_kept(deployment: Deployment) -> None:
    # Given: an intent whose file got no row, found long after: the write after backlog, days and intent is lost
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
    # Given: a file of the control bucket, whose resubmission is repeated whenever its lines are exported again
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
    with pytest.raises(InvalidSettingsError, match=r"ledger\.keep_days = 60 is wrong: .*input .*switch versions on"):
        sweep(deployment.services)
