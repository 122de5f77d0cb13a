"""IGNORED files, which are not lost: datasets beyond ``max_datasets``, folders of one dataset, keys without a rule."""

from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from typing import Any
from unittest.mock import Mock

import pytest
from botocore.exceptions import EndpointConnectionError, ReadTimeoutError

from lake.errors import InvalidInputError
from lake.layout import INTENTS
from lake.ledger import Ledger
from router.ownership.resolve import read_intent
from router.ownership.take import ArrivalOutcome
from router.requests.backfill import backfill
from router.route.handler import route, route_arrivals
from router.services import Services
from router.sweep.handler import sweep
from tests.load.request_counts import counted_requests
from tests.unit.lake.faults import Crash
from tests.unit.lake.world import file_of
from tests.unit.router.conftest import Deployment
from tests.unit.router.events import batch, failures, message

FOLDERS = [{"name": "{folder}"}]


def limit(deployment: Deployment, number: int, **settings: Any) -> None:
    deployment.configure(max_datasets=number, datasets=FOLDERS, peak={"hours": []}, **settings)


def put(deployment: Deployment, key: str) -> Any:
    """Put a file into the input bucket; its event."""
    return batch(message("m1", deployment.announced(key)))


def _row(deployment: Deployment, key: str) -> Any:
    (row,) = deployment.ledger.arrivals.versions("input", key)
    return row


MANY = [f"new_{number}" for number in range(5)]


def count_row(deployment: Deployment) -> int:
    item = deployment.dynamodb.get_item(TableName="ledger", Key={"pk": "dataset-count", "sk": "dataset-count"})["Item"]
    return int(item["number"])


def admissions(deployment: Deployment) -> set[str]:
    return set(deployment.ledger.datasets.names())


def cold(deployment: Deployment) -> Services:
    """The services of a newly started function: its ledger has cached nothing."""
    return replace(deployment.services, ledger=Ledger.over(deployment.faults.wrap(deployment.dynamodb), "ledger"))


@pytest.mark.parametrize("folders", [MANY[:1], MANY], ids=["one", "many"])
@pytest.mark.parametrize("number", range(1, 13))
@pytest.mark.parametrize("fault", ["crash_before", "lose_answer_of", "drop", "delay", "repeat"])
def test_whatever_happens_to_a_write_each_file_gets_one_owner_and_each_new_dataset_one_place(
    deployment: Deployment, fault: str, number: int, folders: list[str]
) -> None:
    # Given files of new datasets for which there is just enough room, and a fault in one of the writes
    limit(deployment, 2 + len(folders))
    files = [file_of(f"{folder}/a.json") for folder in folders]
    deployment.faults.reset()
    setattr(deployment.faults, fault, number)
    with suppress(Crash, ReadTimeoutError):
        assert route_arrivals(cold(deployment), files).beyond_dataset_limit == 0
    deployment.faults.reset()
    # When the events are redelivered, and the delayed write is applied
    deployment.wait(timedelta(minutes=12))
    assert route_arrivals(cold(deployment), files).count(ArrivalOutcome.UNSETTLED) == 0
    deployment.faults.deliver()
    # Then
    assert sum(row.files for row in deployment.waiting()) == len(folders)
    assert admissions(deployment) == {"clicks", "orders", *folders}
    assert count_row(deployment) == len(admissions(deployment))


@pytest.mark.parametrize("room", range(7))
@pytest.mark.parametrize("admitted_before", ["new_1", "another"])
def test_another_invocation_that_admits_a_dataset_takes_no_place_of_others(
    deployment: Deployment, room: int, admitted_before: str
) -> None:
    # Given new datasets, one of which, or another one, is admitted by a second invocation before the first one writes
    limit(deployment, 2 + room)
    other = cold(deployment).ledger.datasets
    deployment.faults.reset()
    deployment.faults.pause = (1, lambda: other.admit({admitted_before: admitted_before}, 2 + room))
    # When
    ownership = route_arrivals(cold(deployment), [file_of(f"{folder}/a.json") for folder in MANY])
    # Then every place is taken, and no dataset beyond the limit is admitted
    admitted = admissions(deployment) - {"clicks", "orders"}
    assert len(admitted) == min(room, len({*MANY, admitted_before}))
    assert count_row(deployment) == len(admissions(deployment))
    assert ownership.count(ArrivalOutcome.OWNED) == len(admitted & set(MANY))
    assert ownership.beyond_dataset_limit == len(MANY) - len(admitted & set(MANY))


def test_a_cold_function_that_meets_many_new_datasets_sends_few_requests_one_after_the_other(
    deployment: Deployment,
) -> None:
    # Given
    limit(deployment, 10_000)
    services = replace(deployment.services, ledger=Ledger.over(deployment.dynamodb, "ledger"))
    many = 250
    # When
    with counted_requests() as counts:
        ownership = route_arrivals(services, [file_of(f"new_{number}/a.json") for number in range(many)])
    # Then only the rows of files, which are written in parallel, grow in number
    assert ownership.count(ArrivalOutcome.OWNED) == many
    assert (counts["PutItem"], counts["UpdateItem"]) == (many, 0)
    assert counts["TransactWriteItems"] <= 4
    assert counts["GetItem"] + counts["BatchGetItem"] <= 20


@pytest.mark.parametrize("rules", [[], [{"name": "new", "prefix": "new/"}]], ids=["of a key", "of a rule"])
def test_a_file_of_a_dataset_without_an_answer_stays_in_its_intent(deployment: Deployment, rules: list[Any]) -> None:
    # Given a ledger that does not answer whether a new dataset is admitted
    deployment.configure(max_datasets=3, datasets=[*rules, *FOLDERS], peak={"hours": []}, urgent={"keys": ["*"]})
    route_arrivals(deployment.services, [file_of("orders/before.json")])
    refuse = Mock(side_effect=EndpointConnectionError(endpoint_url="ledger"))
    deployment.patch.setattr(type(deployment.ledger.datasets), "_put_admissions", refuse)
    # When one of its files arrives together with a file of an old dataset
    ownership = route_arrivals(deployment.services, [file_of("new/a.json"), file_of("orders/a.json")])
    # Then the sweep finds it in the intent, even if its event is never redelivered
    assert (ownership.count(ArrivalOutcome.UNSETTLED), ownership.count(ArrivalOutcome.OWNED)) == (1, 1)
    (key,) = deployment.keys("control", INTENTS)
    assert file_of("new/a.json") in [arrival.file for arrival in read_intent(deployment.services, key).arrivals]


def test_raising_the_limit_gives_the_file_to_a_redelivery_and_to_the_sweep(deployment: Deployment) -> None:
    # Given two files beyond the limit
    limit(deployment, 2)
    events = [put(deployment, f"new/{name}.json") for name in "ab"]
    for event in events:
        assert failures(route(event, deployment.services)) == []
    deployment.wait(timedelta(hours=7))
    assert sweep(deployment.services)["adopted"] == 0
    assert deployment.waiting() == []
    assert "raise max_datasets and deploy" in _row(deployment, "new/b.json").reason
    # When the limit is raised, one event is redelivered and the sweep runs
    limit(deployment, 3)
    assert failures(route(events[0], deployment.services)) == []
    deployment.wait(timedelta(hours=7))
    assert sweep(deployment.services)["adopted"] == 1
    # Then each has an owner
    assert sum(row.files for row in deployment.waiting()) == 2
    assert "was IGNORED: keys have created the maximum" in _row(deployment, "new/b.json").reason


def test_a_backfill_of_a_dataset_without_room_is_refused(deployment: Deployment) -> None:
    # Given a file beyond the limit
    limit(deployment, 2)
    route(put(deployment, "new/a.json"), deployment.services)
    request = {"dataset": "new", "from": "2000-01-01", "to": "2100-01-01"}
    # When a person requests a backfill of its dataset, then the backfill fails instead of converting nothing
    with pytest.raises(InvalidInputError, match="the dataset new would exceed max_datasets: raise it and deploy"):
        backfill({"action": "find", "request": request, "token": None}, deployment.services)
    # When there is room, then the backfill takes the file
    limit(deployment, 3)
    found = backfill({"action": "find", "request": request, "token": None}, deployment.services)
    assert found["recorded"] == 1


def test_a_sweep_lists_no_folder_that_has_no_room(deployment: Deployment) -> None:
    # Given more folders than there is room for datasets, in addition to the two that were admitted
    limit(deployment, 3)
    deployment.now = deployment.put(*(f"folder_{number}/a.json" for number in range(6)))
    deployment.wait(timedelta(hours=7))
    listed = Mock(wraps=deployment.raw_s3.list_object_versions)
    deployment.patch.setattr(deployment.raw_s3, "list_object_versions", listed)
    # When, Then: the first folder in order gets the room
    assert sweep(deployment.services)["adopted"] == 1
    prefixes = [call.kwargs["Prefix"] for call in listed.call_args_list]
    assert [prefix for prefix in prefixes if prefix] == ["clicks/", "folder_0/", "orders/"]


WEB_LOGS = {"dataset": "web_logs", "from": "2000-01-01", "to": "2100-01-01"}


def owned(deployment: Deployment) -> dict[str, str | None]:
    """The dataset of each key, or None if the key is IGNORED."""
    keys = ("web-logs/a.json", "web_logs/a.json", "Web.Logs/a.json")
    rows = [row for key in keys for row in deployment.ledger.arrivals.versions("input", key)]
    return {row.file.key: row.partition.dataset if row.partition else None for row in rows}


@pytest.fixture
def stage(deployment: Deployment) -> Deployment:
    deployment.configure(datasets=FOLDERS, peak={"hours": []})
    return deployment


def test_the_first_folder_has_the_dataset_and_no_other_is_mixed_with_it(stage: Deployment) -> None:
    # When files of three folders arrive one after another
    for key in ("web-logs/a.json", "web_logs/a.json", "Web.Logs/a.json"):
        route_arrivals(stage.services, [file_of(key)])
    # Then
    assert owned(stage) == {"web-logs/a.json": "web_logs", "web_logs/a.json": None, "Web.Logs/a.json": None}
    (row,) = stage.ledger.arrivals.versions("input", "web_logs/a.json")
    assert row.reason == (
        "the folder 'web_logs' would share the dataset web_logs, which the folder 'web-logs' uses: add [[datasets]] "
        "with another name and prefix = 'web_logs/' before the others"
    )
    # And each file is counted under its reason
    groups, complete = stage.ledger.ignored.groups()
    assert complete
    assert [(group.files, group.example) for group in groups] == [
        (1, "s3://input/Web.Logs/a.json"),
        (1, "s3://input/web_logs/a.json"),
    ]


def test_a_folder_with_the_datasets_exact_name_wins_over_others_that_arrive_at_once(stage: Deployment) -> None:
    ownership = route_arrivals(stage.services, [file_of("web-logs/a.json"), file_of("web_logs/a.json")])
    assert ownership.count(ArrivalOutcome.OWNED) == ownership.count(ArrivalOutcome.IGNORED) == 1
    assert ownership.beyond_dataset_limit == 0
    assert owned(stage) == {"web-logs/a.json": None, "web_logs/a.json": "web_logs"}


def test_invocations_at_once_agree_on_the_folder(stage: Deployment) -> None:
    # Given an invocation that is about to take the dataset, while another one takes it
    def meanwhile() -> None:
        assert stage.ledger.datasets.admit({"web_logs": "web-logs"}, 1000) == {"web_logs": "web-logs"}

    stage.faults.pause = (1, meanwhile)
    # Then both name the same folder
    assert stage.ledger.datasets.admit({"web_logs": "web_logs"}, 1000) == {"web_logs": "web-logs"}


def test_a_backfill_and_a_sweep_find_the_files_of_a_folder_that_is_not_the_name(stage: Deployment) -> None:
    # Given files whose events never arrived
    put(stage, "web-logs/a.json")
    # When, Then
    found = backfill({"action": "find", "request": {**WEB_LOGS, "dryRun": True}, "token": None}, stage.services)
    assert found["recorded"] == 1
    stage.wait(timedelta(hours=7))
    assert sweep(stage.services)["adopted"] == 1
    assert owned(stage) == {"web-logs/a.json": "web_logs"}


def test_the_rule_that_the_reason_names_takes_the_file_and_ends_the_count(stage: Deployment) -> None:
    # Given an ignored file
    route(put(stage, "web-logs/a.json"), stage.services)
    event: Any = put(stage, "web_logs/a.json")
    route(event, stage.services)
    assert len(stage.ledger.ignored.groups()[0]) == 1
    # When the rule is deployed, and the event redelivered
    stage.configure(datasets=[{"name": "other", "prefix": "web_logs/"}, *FOLDERS], peak={"hours": []})
    route(event, stage.services)
    # Then
    assert owned(stage)["web_logs/a.json"] == "other"
    assert stage.ledger.ignored.groups() == ([], True)
    assert sum(row.files for row in stage.waiting()) == 2


@pytest.mark.parametrize("fault", [{}, {"repeat": 1}, {"lose_answer_of": 1}], ids=str)
def test_ignored_files_are_counted_once_and_only_data(stage: Deployment, fault: dict[str, int]) -> None:
    # Given files at the top of the bucket, with a suffix that is not taken, and markers; a put may lose its answer
    vars(stage.faults).update(fault)
    markers = ("orders/_SUCCESS", "orders/", "orders/.x", "orders/_temporary/0/a.json")
    files = [file_of(key) for key in ("a.json", "b.json", "orders/a.csv", *markers)]
    # When their events are delivered twice
    for _ in range(2):
        route_arrivals(stage.services, files)
        stage.wait(timedelta(seconds=1))
    # Then
    groups, _ = stage.ledger.ignored.groups()
    assert [(group.files, group.reason.partition(":")[0][:40]) for group in groups] == [
        (2, "no rule of [[datasets]] matches the key,"),
        (1, "the name ends in none of .ndjson, .jsonl"),
    ]
