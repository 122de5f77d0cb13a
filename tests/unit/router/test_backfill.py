"""backfill: valid requests, and objects whose event never arrived."""

from datetime import timedelta
from typing import Any
from unittest.mock import Mock, patch

import pytest
from botocore.exceptions import ClientError

from lake.errors import InvalidInputError, OwnershipError
from lake.ledger.arrivals import Arrivals
from lake.manifest import Partition
from router.ownership.resolve import OWNER_GRACE
from router.requests import backfill as find_module
from router.requests.backfill import backfill
from tests.unit.lake.faults import Crash
from tests.unit.router.conftest import Deployment
from tests.unit.router.sweep.sweeping import list_pages

RANGE = {"dataset": "orders", "from": "2000-01-01", "to": "2100-01-01"}


def validate(deployment: Deployment, given: Any) -> dict[str, Any]:
    return backfill({"action": "validate", "input": given}, deployment.services)


def find(deployment: Deployment, token: str | None = None, **changes: Any) -> dict[str, Any]:
    return backfill({"action": "find", "request": {**RANGE, **changes}, "token": token}, deployment.services)


def found_files(deployment: Deployment) -> list[str]:
    return [file.key for file in deployment.waiting_files()]


def test_a_request_is_normalised_and_stays_so(deployment: Deployment) -> None:
    request = validate(deployment, {"dataset": "orders", "from": "2026-11-01", "to": "2026-11-02"})
    hours = {"from": "2026-11-01T00", "to": "2026-11-02T23"}
    assert request == {"dataset": "orders", **hours, "dryRun": False, "force": False}
    assert validate(deployment, request) == request


def test_a_folder_that_holds_files_is_a_dataset(deployment: Deployment) -> None:
    deployment.put("refunds/a.json")
    assert validate(deployment, {**RANGE, "dataset": "refunds"})["dataset"] == "refunds"


def test_an_unknown_dataset_is_answered_with_some_of_many(deployment: Deployment) -> None:
    # All names of 10,000 datasets would not fit the state of a state machine.
    for number in range(30):
        deployment.ledger.datasets.admit({f"d{number:02d}": ""}, 0)
    with pytest.raises(InvalidInputError, match=r"pass one of clicks, d00, .*, d18 and 12 more$"):
        validate(deployment, {**RANGE, "dataset": "refunds"})


@pytest.mark.parametrize("others", [[], [{"name": "{folder}"}]])
def test_a_dataset_whose_rule_was_renamed_has_nothing_to_list(deployment: Deployment, others: list[Any]) -> None:
    # Given a dataset whose files belong to another dataset today
    deployment.configure(datasets=[{"name": "sales", "prefix": "orders/"}, *others])
    # When, Then: a backfill would find no file, even one that began before; converted files can be converted again
    for act in (validate, lambda stage, _: find(stage)):
        with pytest.raises(InvalidInputError, match=r"no rule of \[\[datasets\]\] gives files to orders"):
            act(deployment, RANGE)
    assert validate(deployment, {**RANGE, "force": True})["force"]


def test_objects_without_an_event_become_arrivals_of_the_batch_lane(deployment: Deployment) -> None:
    deployment.put("orders/b ü+\n.JSON", "orders/c.csv", "orders/_temporary/0/e.json", "clicks/d.json")
    modified = deployment.put("orders/a.json")
    result = find(deployment)
    totals = {"found": 2, "known": 0, "recorded": 2, "unsettled": 0, "bytes": 6, "compressed": 0, "archived": 0}
    assert result == {"token": None, "waitSeconds": 0, **totals}
    assert found_files(deployment) == ["orders/a.json", "orders/b ü+\n.JSON"]
    [row] = deployment.ledger.arrivals.versions("input", "orders/a.json")
    assert (row.lane, row.reason) == ("batch", "backfill 2000-01-01T00 to 2100-01-01T23")
    assert row.partition == Partition.of("orders", modified)
    assert find(deployment)["recorded"] == 0


def test_a_dry_run_counts_the_archived_objects_without_an_owner(deployment: Deployment) -> None:
    # Given: three archived objects and one other; the first archived one has an owner
    for name in "abc":
        deployment.raw_s3.put_object(Bucket="input", Key=f"orders/{name}.json", Body=b"{}\n", StorageClass="GLACIER")
        if name == "a":
            find(deployment)
    deployment.put("orders/d.json.gz")
    deployment.faults.writes.clear()
    # When, Then
    totals = {"found": 4, "known": 1, "recorded": 3, "bytes": 9, "compressed": 3, "archived": 2}
    result = find(deployment, dryRun=True)
    assert {name: result[name] for name in totals} == totals
    assert deployment.faults.writes == []


@pytest.mark.parametrize("hours", [-1, 1])
def test_objects_outside_the_range_are_not_found(deployment: Deployment, hours: int) -> None:
    modified = deployment.put("orders/a.json")
    hour = f"{modified + timedelta(hours=hours):%Y-%m-%dT%H}"
    matching_rule = Mock(return_value=(None, "orders"))
    deployment.patch.setattr(find_module, "matching_rule", matching_rule)
    assert find(deployment, **{"from": hour, "to": hour})["found"] == 0
    # And no key is compared with the rules, which can be thousands
    assert "orders/a.json" not in [call.args[0] for call in matching_rule.call_args_list]


def test_every_version_that_the_ledger_does_not_know_is_found(deployment: Deployment) -> None:
    # Given two versions of a key, and one under a delete marker, which verify reports until the ledger knows them
    deployment.keep_versions()
    deployment.put("orders/a.json", "orders/a.json", "orders/deleted.json")
    deployment.raw_s3.delete_object(Bucket="input", Key="orders/deleted.json")
    # When, Then
    assert find(deployment)["recorded"] == 3
    assert find(deployment)["known"] == 3


def test_a_page_whose_owner_may_be_alive_is_visited_once_more(deployment: Deployment) -> None:
    # Given a process that died after the intent and the arrival row
    deployment.now = deployment.put("orders/a.json")
    deployment.faults.crash_before = 3
    with pytest.raises(Crash):
        find(deployment)
    deployment.faults.reset()
    # When
    first = find(deployment)
    assert first["waitSeconds"] > 0
    # Then a file that arrived after the first visit is left to its owner
    again = find(deployment, first["token"])
    assert (again["token"], again["waitSeconds"], again["unsettled"], again["recorded"]) == (None, 0, 1, 0)
    assert deployment.keys("control", "intents/")
    # When the owner is presumed dead
    deployment.wait(OWNER_GRACE + timedelta(seconds=1))
    assert find(deployment, first["token"])["recorded"] == 1
    assert found_files(deployment) == ["orders/a.json"]


def test_no_night_begins_without_files_that_get_no_owner(deployment: Deployment) -> None:
    # Given older files, and a ledger that refuses every row of an arrival
    deployment.now = deployment.put("orders/a.json", "orders/b.json") + timedelta(hours=1)
    error = ClientError({"Error": {"Code": "AccessDeniedException", "Message": ""}}, "PutItem")
    with patch.object(Arrivals, "put", side_effect=error):
        first = find(deployment)
        deployment.wait(timedelta(seconds=first["waitSeconds"]))
        # When, Then the state machine repeats the visit, and finally notifies a person
        with pytest.raises(OwnershipError, match="2 files of the dataset orders cannot get an owner"):
            find(deployment, first["token"])
    assert find(deployment, first["token"])["recorded"] == 2


def test_a_long_listing_continues_where_it_stopped(deployment: Deployment) -> None:
    # Given: pages of two; the first ends within the versions of a key; and a clock that allows one page per call
    deployment.patch.setattr(find_module, "TIME_PER_CALL", timedelta(microseconds=1))
    deployment.keep_versions()
    keys = [f"orders/{number} ü.json" for number in (0, 0, 0, 1, 2)]
    deployment.put(*keys)
    list_pages(deployment, 2, lambda _: deployment.wait(timedelta(seconds=1)))
    # When
    token, totals = None, []
    for _ in range(3):
        result = find(deployment, token)
        token = result["token"]
        totals.append(result["recorded"])
    # Then
    assert (totals, token) == ([2, 4, 5], None)
    assert found_files(deployment) == keys


def test_each_key_is_found_once_though_prefixes_of_a_dataset_overlap(deployment: Deployment) -> None:
    # Given rules, one of which takes files without a folder; these files are listed without folders
    rules = [{"name": "orders", "prefix": "web/orders"}, {"name": "{folder}", "prefix": "web/"}, {"name": "{folder}"}]
    deployment.configure(datasets=[*rules, {"name": "orders"}])
    deployment.put("a.json", "orders/b.json", "web/orders-c.json", "web/orders/d.json")
    # When, Then
    assert find(deployment)["found"] == 4
    assert found_files(deployment) == ["a.json", "orders/b.json", "web/orders-c.json", "web/orders/d.json"]
