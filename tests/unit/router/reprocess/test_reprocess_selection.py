"""reprocess: datasets and hours, in pages; inputs that are not valid."""

from datetime import timedelta
from typing import Any

import pytest

from lake.errors import InvalidInputError
from lake.manifest import Partition
from router.requests import reprocess as handler_module
from tests.unit.lake.world import PARTITION
from tests.unit.router.conftest import Deployment
from tests.unit.router.reprocess.reprocessing import ask, counts, done, failed, generations, owned, superseded

HOURS = [Partition(dataset, "2026-11-20", hour) for dataset in ("clicks", "orders") for hour in (8, 9)]


@pytest.mark.parametrize(
    ("fields", "queued"),
    [
        ({"dataset": "orders"}, ["orders8", "orders9"]),
        ({"from": "2026-11-20T09"}, ["clicks9", "orders9"]),
        ({"dataset": "clicks", "from": "2026-11-20T08", "to": "2026-11-20T08"}, ["clicks8"]),
        ({"from": "0001-01-01", "to": "9999-12-31"}, ["clicks8", "clicks9", "orders8", "orders9"]),
        ({"from": "0900-01-01"}, ["clicks8", "clicks9", "orders8", "orders9"]),
        ({"from": "2026-11-21"}, []),
        ({"to": "2026-11-19"}, []),
    ],
)
def test_datasets_and_hours_select_what_failed(
    deployment: Deployment, fields: dict[str, Any], queued: list[str]
) -> None:
    manifests = {f"{hour.dataset}{hour.hour}": failed(deployment, "a", str(hour), partition=hour) for hour in HOURS}
    assert ask(deployment, **fields)["queued"] == len(queued)
    expected = [("QUEUED", 2) if name in queued else ("FAILED", 1) for name in manifests]
    assert generations(deployment, *manifests.values()) == expected


def test_a_manifest_that_was_made_days_after_its_hour_is_selected(deployment: Deployment) -> None:
    deployment.wait(timedelta(days=3))
    failed(deployment, "a")
    answer = ask(deployment, **{"from": "2026-11-20T09", "to": "2026-11-20T09"})
    assert counts(answer) == {"queued": 1, "files": 1}


def test_a_selection_names_only_what_it_queues_and_counts_the_rest(deployment: Deployment) -> None:
    # Given: one of each
    partial, _, _ = done(deployment, "a", unreadable=True), done(deployment, "b"), owned(deployment, "c")
    superseded(deployment, owned(deployment, "d", "e"), ("d",), ("e",))
    deployment.ledger.manifests.abandon("20261120T093000" + "0" * 20, deployment.now)
    # When
    answer = ask(deployment, dataset="orders")
    # Then
    assert counts(answer) == {"queued": 1, "files": 1, "converted": 1, "open": 3}
    assert [partial in message for message in answer["messages"]] == [True]


def test_a_selection_continues_page_by_page_and_its_totals_are_those_of_all_pages(
    deployment: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Given: pages of two documents, and a clock that allows one page per call
    monkeypatch.setattr(handler_module, "TIME_PER_CALL", timedelta(microseconds=1))
    manifests = [failed(deployment, str(number)) for number in range(5)]
    listing, client = deployment.raw_s3.list_objects_v2, deployment.services.s3

    def small_pages(**request: Any) -> Any:
        deployment.wait(timedelta(seconds=1))
        return listing(**request, MaxKeys=2)

    monkeypatch.setattr(client, "list_objects_v2", small_pages, raising=False)
    # When
    totals, token = [], None
    for _ in range(3):
        continued: dict[str, Any] = {"from": "2026-11-20", "token": token}
        answer = ask(deployment, **continued)
        totals.append(answer["queued"])
        token = answer["token"]
    # Then
    assert (totals, token) == ([2, 4, 5], None)
    assert generations(deployment, *manifests) == [("QUEUED", 2)] * 5
    # And: the whole request again, from the beginning
    assert ask(deployment, **{"from": "2026-11-20"})["repeated"] == 2


VALID_ID = "20261120T093000" + "0" * 20


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({}, "reprocess was given neither manifests nor files nor a dataset or hours: pass {"),
        ({"manifests": [VALID_ID], "files": ["s3://a/b"]}, "reprocess was given manifests and files: pass"),
        ({"manifests": [VALID_ID], "to": "2026-11-20"}, "reprocess was given manifests and a dataset or hours"),
        ({"manifests": []}, "manifests = [] is not a valid list"),
        ({"manifests": ["../x"]}, "'../x' is not a valid manifest id: pass one as explain and the verdicts name it"),
        ({"files": ["orders/a"]}, "'orders/a' is not a valid S3 URI"),
        ({"files": ["s3://a/b"], "only": "done"}, "only = 'done' is unknown: pass failed or all"),
        ({"files": ["s3://a/b"], "dryRun": "yes"}, "dryRun = 'yes' is neither true nor false"),
        ({"files": ["s3://a/b"], "request": "a b"}, "request = 'a b' is not a valid id"),
        ({"dataset": "nowhere"}, "dataset = 'nowhere' is unknown"),
        ({"from": "2026-11-20", "token": "xyz"}, "token is not one that reprocess has returned"),
        ({"force": True}, "reprocess does not know the input field 'force'"),
    ],
)
def test_an_invalid_input_says_what_to_pass(deployment: Deployment, fields: dict[str, Any], sentence: str) -> None:
    deployment.ledger.datasets.register(PARTITION.dataset)
    with pytest.raises(InvalidInputError) as caught:
        ask(deployment, **fields)
    assert str(caught.value).startswith(sentence)
    assert deployment.faults.writes[1:] == []
