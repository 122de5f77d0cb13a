"""A sweep that is killed loses no progress, fits its timeout, and one bad item does not hold back the others."""

from datetime import timedelta
from typing import Any

import pytest

import router.sweep.handler as handler_module
from infra.functions import SPECS
from lake.manifest import Lane
from router.ownership import OWNER_GRACE, RoutedArrival
from router.ownership.resolve import write_intent
from router.sweep.handler import TIME_PER_SWEEP, sweep
from tests.unit.lake.faults import Crash
from tests.unit.lake.world import PARTITION, file_of
from tests.unit.router.conftest import Deployment
from tests.unit.router.owning import orphan
from tests.unit.router.sweep.test_sweep_missed import owned_keys, put

TIME_FOR_WORK_UNDER_WAY = timedelta(minutes=5)
REPAIRS = (
    "finish_publishing",
    "release_leases",
    "renew_pointers",
    "resume_intents",
    "adopt_missed",
    "divide_collections",
    "abort_uploads",
    "report_stalled",
    "announce_hours",
    "record_late_bills",
    "delete_replaced",
)
KEYS = [f"orders/{number}.json" for number in range(4)]


class PagesOfOne:
    """Listings of one object each; the n-th call dies, before or after S3 has answered."""

    def __init__(self, deployment: Deployment, monkeypatch: pytest.MonkeyPatch, operation: str, bucket: str) -> None:
        self.markers: list[str] = []
        self.dies_at = 0
        listing = getattr(deployment.raw_s3, operation)

        def list_one(**request: Any) -> Any:
            if request["Bucket"] != bucket or "Delimiter" in request:
                return listing(**request)
            self.markers.append(request.get("KeyMarker", request.get("StartAfter", "")))
            if len(self.markers) == self.dies_at:
                raise Crash
            return listing(**{**request, "MaxKeys": 1})

        monkeypatch.setattr(deployment.raw_s3, operation, list_one)


@pytest.mark.parametrize("number", range(1, len(KEYS) + 1))
def test_a_listing_of_the_input_goes_on_after_the_last_page_of_a_killed_sweep(
    deployment: Deployment, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    # Given a sweep that is killed at one of its pages
    deployment.now = put(deployment, *KEYS) + timedelta(hours=7)
    pages = PagesOfOne(deployment, monkeypatch, "list_object_versions", "input")
    pages.dies_at = number
    with pytest.raises(Crash):
        sweep(deployment.services)
    # When the next one comes
    pages.dies_at = 0
    sweep(deployment.services)
    # Then it begins with the page that was lost, and every object has one owner
    assert pages.markers == ["", *KEYS[: number - 1], *["", *KEYS[:-1]][number - 1 :]]
    assert owned_keys(deployment) == KEYS


def test_no_repair_starves_where_all_use_their_time(deployment: Deployment, monkeypatch: pytest.MonkeyPatch) -> None:
    # Given repairs that use all the time they get
    begun, budgets = deployment.now, []

    def use_up(repair: Any, *_: Any) -> None:
        budgets.append(repair.stop_at - deployment.now)
        deployment.now = max(deployment.now, repair.stop_at)

    for name in REPAIRS:
        monkeypatch.setattr(handler_module, name, use_up)
    # When
    sweep(deployment.services)
    # Then each gets its share, and what is under way at the end has time left
    (spec,) = (spec for spec in SPECS if spec.name == "sweep")
    assert len(budgets) == len(REPAIRS)
    assert min(budgets) >= TIME_PER_SWEEP / (len(budgets) + 2)
    assert deployment.now - begun <= TIME_PER_SWEEP
    assert deployment.now - begun + TIME_FOR_WORK_UNDER_WAY <= timedelta(seconds=spec.timeout_seconds)


def test_an_intent_that_cannot_be_read_is_reported_and_holds_back_no_other(deployment: Deployment) -> None:
    # Given an intent that this version cannot read, and an orphan with an intent after it
    deployment.raw_s3.put_object(Bucket="control", Key="intents/20260101T000000a.json", Body=b'{"format": 99}')
    key = "clicks/a.json"
    orphan(deployment, key, PARTITION, Lane.BATCH)
    [row] = deployment.ledger.arrivals.versions("input", key)
    assert row.partition is not None
    write_intent(deployment.services, [RoutedArrival(row.file, row.partition, Lane.BATCH, "test")], deployment.now)
    deployment.wait(OWNER_GRACE + timedelta(minutes=1))
    # When two sweeps come
    for _ in range(2):
        with pytest.raises(Exception, match="cannot read the intent"):
            sweep(deployment.services)
    # Then the second intent is done, and the first is kept
    [row] = deployment.ledger.arrivals.versions("input", key)
    assert row.manifest != "crashed"
    assert deployment.keys("control", "intents/") == ["intents/20260101T000000a.json"]


def test_a_young_intent_is_left_to_the_invocation_that_wrote_it(deployment: Deployment) -> None:
    arrival = RoutedArrival(file_of("orders/a.json"), PARTITION, Lane.BATCH, "test")
    write_intent(deployment.services, [arrival], deployment.now)
    deployment.wait(OWNER_GRACE)
    assert sweep(deployment.services)["resumed"] == 0
    deployment.wait(timedelta(minutes=15))
    assert sweep(deployment.services)["resumed"] == 1
