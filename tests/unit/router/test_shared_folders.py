"""Two folders whose names give one dataset: one has it, the files of the other are IGNORED, counted and listed."""

from datetime import timedelta
from typing import Any

import pytest

from router.ownership import ArrivalOutcome
from router.requests.backfill import backfill
from router.route.handler import route, route_arrivals
from router.sweep.handler import sweep
from tests.unit.lake.world import file_of
from tests.unit.router.conftest import Deployment
from tests.unit.router.test_dataset_limit import FOLDERS, put

REQUEST = {"dataset": "web_logs", "from": "2000-01-01", "to": "2100-01-01"}


def owned(deployment: Deployment) -> dict[str, str | None]:
    """The dataset of each key; None: it is IGNORED."""
    found: dict[str, str | None] = {}
    for key in ("web-logs/a.json", "web_logs/a.json", "Web.Logs/a.json"):
        for row in deployment.ledger.arrivals.versions("input", key):
            found[key] = row.partition.dataset if row.partition else None
    return found


@pytest.fixture
def stage(deployment: Deployment) -> Deployment:
    deployment.configure(datasets=FOLDERS, peak={"hours": []})
    return deployment


def test_the_first_folder_has_the_dataset_and_no_other_is_mixed_with_it(stage: Deployment) -> None:
    # When files of three folders come one after another
    for key in ("web-logs/a.json", "web_logs/a.json", "Web.Logs/a.json"):
        route_arrivals(stage.services, [file_of(key)])
    # Then
    assert owned(stage) == {"web-logs/a.json": "web_logs", "web_logs/a.json": None, "Web.Logs/a.json": None}
    (row,) = stage.ledger.arrivals.versions("input", "web_logs/a.json")
    assert row.reason == (
        "the folder 'web_logs' would share the dataset web_logs, which the folder 'web-logs' has: add [[datasets]] "
        "with another name and prefix = 'web_logs/' before the others"
    )
    # And each is counted by its reason
    groups, complete = stage.ledger.ignored.groups()
    assert complete
    assert [(group.files, group.example) for group in groups] == [
        (1, "s3://input/Web.Logs/a.json"),
        (1, "s3://input/web_logs/a.json"),
    ]


def test_of_folders_that_come_at_once_the_one_of_the_name_itself_has_it(stage: Deployment) -> None:
    ownership = route_arrivals(stage.services, [file_of("web-logs/a.json"), file_of("web_logs/a.json")])
    assert ownership.count(ArrivalOutcome.OWNED) == ownership.count(ArrivalOutcome.IGNORED) == 1
    assert ownership.beyond_dataset_limit == 0
    assert owned(stage) == {"web-logs/a.json": None, "web_logs/a.json": "web_logs"}


def test_invocations_at_once_agree_on_the_folder(stage: Deployment) -> None:
    # Given an invocation that is about to take the dataset, while another one does
    def meanwhile() -> None:
        assert stage.ledger.datasets.admit("web_logs", 1000, (), "web-logs") == "web-logs"

    stage.faults.pause = (1, meanwhile)
    # Then both name the same folder
    assert stage.ledger.datasets.admit("web_logs", 1000, (), "web_logs") == "web-logs"


def test_a_backfill_and_a_sweep_find_the_files_of_a_folder_that_is_not_the_name(stage: Deployment) -> None:
    # Given files whose events never came
    put(stage, "web-logs/a.json")
    # When, Then
    found = backfill({"action": "find", "request": {**REQUEST, "dryRun": True}, "token": None}, stage.services)
    assert found["recorded"] == 1
    stage.wait(timedelta(hours=7))
    assert sweep(stage.services)["adopted"] == 1
    assert owned(stage) == {"web-logs/a.json": "web_logs"}


def test_the_rule_that_the_reason_names_takes_the_file_and_ends_the_count(stage: Deployment) -> None:
    # Given an ignored file
    put(stage, "web-logs/a.json")
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


def test_ignored_files_are_counted_once_and_only_data(stage: Deployment) -> None:
    # Given files at the top of the bucket, of a suffix that is not taken, and markers
    files = [file_of(key) for key in ("a.json", "b.json", "orders/a.csv", "orders/_SUCCESS", "orders/", "orders/.x")]
    # When they come twice
    for _ in range(2):
        route_arrivals(stage.services, files)
    # Then
    groups, _ = stage.ledger.ignored.groups()
    assert [(group.files, group.reason.partition(":")[0][:40]) for group in groups] == [
        (2, "no rule of [[datasets]] matches the key,"),
        (1, "the name ends in none of .ndjson, .jsonl"),
    ]
