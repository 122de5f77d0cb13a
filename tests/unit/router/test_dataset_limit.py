"""``max_datasets`` bounds how many datasets keys create; what is beyond it is IGNORED with its reason, and not lost."""

from datetime import datetime, timedelta
from typing import Any

import pytest
from botocore.exceptions import EndpointConnectionError

from lake.errors import InvalidInputError
from lake.layout import INTENTS
from router.ownership import ArrivalOutcome
from router.ownership.resolve import read_intent
from router.requests.backfill import backfill
from router.route.handler import route, route_arrivals
from router.sweep.handler import sweep
from tests.unit.lake.faults import Crash
from tests.unit.lake.world import file_of
from tests.unit.router.conftest import Deployment
from tests.unit.router.events import batch, failures, message, s3_record

FOLDERS = [{"name": "{folder}"}]


def limit(deployment: Deployment, number: int, **settings: Any) -> None:
    deployment.configure(max_datasets=number, datasets=FOLDERS, peak={"hours": []}, **settings)


def datasets(deployment: Deployment) -> list[str]:
    return list(deployment.ledger.datasets.names())


def put(deployment: Deployment, key: str) -> Any:
    """Put a file into the input bucket; its event."""
    deployment.raw_s3.put_object(Bucket="input", Key=key, Body=b"{}\n")
    head = deployment.raw_s3.head_object(Bucket="input", Key=key)
    modified: datetime = head["LastModified"]
    deployment.now = modified + timedelta(seconds=1)
    record = s3_record(key, eTag=head["ETag"].strip('"'), versionId=None, size=3, time=modified.isoformat())
    return batch(message("m1", record))


def test_a_further_dataset_is_ignored_with_the_reason_and_its_event_acknowledged(deployment: Deployment) -> None:
    # Given room for one dataset more than the two that exist
    limit(deployment, 3)
    # When files of four new folders come at once, and of an old one
    files = [file_of(f"{folder}/a.json") for folder in ("new_a", "new_b", "new_c", "new_d", "orders")]
    ownership = route_arrivals(deployment.services, files)
    # Then one of them is let in, and the others are recorded with a reason that says what to do
    assert ownership.count(ArrivalOutcome.OWNED) == 2
    assert ownership.count(ArrivalOutcome.IGNORED) == ownership.beyond_dataset_limit == 3
    assert len(datasets(deployment)) == 2
    ignored = [row for row in (_row(deployment, file.key) for file in files) if row.manifest is None]
    assert len(ignored) == 3
    assert all("raise max_datasets and deploy" in row.reason for row in ignored)


def _row(deployment: Deployment, key: str) -> Any:
    (row,) = deployment.ledger.arrivals.versions("input", key)
    return row


def test_a_dataset_that_was_let_in_keeps_its_place(deployment: Deployment) -> None:
    # Given a dataset that was let in before the limit was lowered
    limit(deployment, 3)
    route_arrivals(deployment.services, [file_of("new_a/1.json")])
    limit(deployment, 1)
    # When more of its files come, then they are routed
    assert route_arrivals(deployment.services, [file_of("new_a/2.json")]).count(ArrivalOutcome.OWNED) == 1


def test_a_dataset_that_a_rule_names_has_always_room(deployment: Deployment) -> None:
    deployment.configure(max_datasets=1, datasets=[{"name": "named", "prefix": "named/"}, *FOLDERS])
    assert route_arrivals(deployment.services, [file_of("named/1.json")]).count(ArrivalOutcome.OWNED) == 1
    assert route_arrivals(deployment.services, [file_of("other/1.json")]).beyond_dataset_limit == 1


def test_datasets_of_a_version_without_the_limit_stay_and_count(deployment: Deployment) -> None:
    # Given a deployment of that version: dataset rows alone
    for name in ("admitted-dataset", "dataset-count"):
        for sk in ("orders", "clicks", "dataset-count"):
            deployment.dynamodb.delete_item(TableName="ledger", Key={"pk": name, "sk": sk})
    for name in ("orders", "old"):
        deployment.ledger.datasets.register(name)
    limit(deployment, 2)
    # When files of an old and of a new dataset come
    ownership = route_arrivals(deployment.services, [file_of("old/1.json"), file_of("new/1.json")])
    # Then
    assert ownership.count(ArrivalOutcome.OWNED) == ownership.beyond_dataset_limit == 1
    assert datasets(deployment) == ["old", "orders"]


def test_two_invocations_at_once_do_not_exceed_the_limit(deployment: Deployment) -> None:
    # Given room for one dataset, and an invocation that is about to let one in
    limit(deployment, 3)

    def meanwhile() -> None:
        assert deployment.ledger.datasets.admit("fast", 3, ())

    deployment.faults.pause = (1, meanwhile)
    # When another one lets in another dataset before
    admitted = deployment.ledger.datasets.admit("slow", 3, ())
    # Then
    assert not admitted
    assert deployment.ledger.datasets.admit("fast", 3, ())


@pytest.mark.parametrize("number", range(1, 10))
@pytest.mark.parametrize("fault", ["crash_before", "lose_answer_of", "drop"])
def test_whatever_happens_to_a_write_the_file_gets_one_owner_and_the_dataset_one_place(
    deployment: Deployment, fault: str, number: int
) -> None:
    # Given the first file of a dataset, and a fault of one of the writes
    limit(deployment, 3)
    event = put(deployment, "new/a.json")
    deployment.faults.reset()
    setattr(deployment.faults, fault, number)
    try:
        route(event, deployment.services)
    except Crash:
        assert fault == "crash_before"
    deployment.faults.reset()
    # When the event is redelivered
    deployment.wait(timedelta(minutes=12))
    assert failures(route(event, deployment.services)) == []
    # Then
    assert sum(row.files for row in deployment.waiting()) == 1
    assert not deployment.ledger.datasets.admit("another", 3, ())


def test_a_file_of_a_dataset_without_an_answer_stays_in_its_intent(
    deployment: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Given a ledger that does not say whether there is room for a new dataset
    limit(deployment, 3)
    answer = deployment.ledger.datasets.admit

    def admit(name: str, *others: Any) -> str | None:
        if name == "new":
            raise EndpointConnectionError(endpoint_url="ledger")
        return answer(name, *others)

    monkeypatch.setattr(type(deployment.ledger.datasets), "admit", lambda _, *request: admit(*request))
    # When a file of it comes together with one of an old dataset
    ownership = route_arrivals(deployment.services, [file_of("new/a.json"), file_of("orders/a.json")])
    # Then the sweep finds it in the intent, also if its event never comes again
    assert (ownership.count(ArrivalOutcome.UNSETTLED), ownership.count(ArrivalOutcome.OWNED)) == (1, 1)
    (key,) = intents(deployment)
    assert file_of("new/a.json") in [arrival.file for arrival in read_intent(deployment.services, key).arrivals]


def intents(deployment: Deployment) -> list[str]:
    listed = deployment.raw_s3.list_objects_v2(Bucket=deployment.resources.control_bucket, Prefix=INTENTS)
    return [item["Key"] for item in listed.get("Contents", [])]


def test_raising_the_limit_gives_the_file_to_a_redelivery_and_to_the_sweep(deployment: Deployment) -> None:
    # Given two files beyond the limit
    limit(deployment, 2)
    events = [put(deployment, f"new/{name}.json") for name in "ab"]
    for event in events:
        assert failures(route(event, deployment.services)) == []
    deployment.wait(timedelta(hours=7))
    assert sweep(deployment.services)["adopted"] == 0
    assert deployment.waiting() == []
    # When the limit is raised, one event is redelivered and the sweep runs
    limit(deployment, 3)
    assert failures(route(events[0], deployment.services)) == []
    deployment.wait(timedelta(hours=7))
    assert sweep(deployment.services)["adopted"] == 1
    # Then each has an owner
    assert sum(row.files for row in deployment.waiting()) == 2
    assert "was IGNORED: keys have created as many datasets" in _row(deployment, "new/b.json").reason


def test_a_backfill_of_a_dataset_without_room_says_so(deployment: Deployment) -> None:
    # Given a file beyond the limit
    limit(deployment, 2)
    route(put(deployment, "new/a.json"), deployment.services)
    request = {"dataset": "new", "from": "2000-01-01", "to": "2100-01-01"}
    # When a person asks for its dataset, then it does not succeed without converting anything
    with pytest.raises(InvalidInputError, match="no room for the dataset new: raise max_datasets and deploy"):
        backfill({"action": "find", "request": request, "token": None}, deployment.services)
    # When there is room, then the backfill takes the file
    limit(deployment, 3)
    found = backfill({"action": "find", "request": request, "token": None}, deployment.services)
    assert found["recorded"] == 1


def test_a_sweep_lists_no_folder_that_has_no_room(deployment: Deployment, monkeypatch: pytest.MonkeyPatch) -> None:
    # Given more folders than datasets have room
    limit(deployment, 3)
    for number in range(6):
        deployment.raw_s3.put_object(Bucket="input", Key=f"folder_{number}/a.json", Body=b"{}\n")
    deployment.now = deployment.raw_s3.head_object(Bucket="input", Key="folder_0/a.json")["LastModified"]
    deployment.wait(timedelta(hours=7))
    listed = []
    listing = deployment.raw_s3.list_object_versions

    def recorded(**request: Any) -> Any:
        listed.append(request["Prefix"])
        return listing(**request)

    monkeypatch.setattr(deployment.raw_s3, "list_object_versions", recorded)
    # When, Then: the first ones in order get the room
    assert sweep(deployment.services)["adopted"] == 1
    assert [prefix for prefix in listed if prefix] == ["folder_0/", "folder_1/", "folder_2/"]
