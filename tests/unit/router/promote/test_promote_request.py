"""promote: valid requests, and invalid ones refused with a message that says what to pass."""

from typing import Any

import pytest

from lake.errors import InvalidInputError
from lake.manifest import Lane, Partition
from router.requests import selection
from router.requests.promote import promote
from router.requests.report import MAX_MESSAGES
from tests.unit.router.conftest import Deployment
from tests.unit.router.promote.promoting import ask, counts, live, owned

HOURS = [Partition(dataset, "2026-11-20", hour) for dataset in ("clicks", "orders") for hour in (8, 9)]


@pytest.mark.parametrize(
    ("fields", "urgent"),
    [
        ({"dataset": "orders"}, ["orders8", "orders9"]),
        ({"from": "2026-11-20T09"}, ["clicks9", "orders9"]),
        ({"dataset": "clicks", "from": "2026-11-20T08", "to": "2026-11-20T08"}, ["clicks8"]),
        ({"to": "2026-11-19"}, []),
    ],
)
def test_a_part_of_the_backlog_can_be_selected(
    deployment: Deployment, fields: dict[str, Any], urgent: list[str]
) -> None:
    for hour in HOURS:
        owned(deployment, f"{hour.dataset}{hour.hour}", partition=hour)
    assert ask(deployment, **fields)["promoted"] == len(urgent)
    assert live(deployment)[Lane.STREAM] == [[name] for name in urgent]


def test_a_selection_continues_without_a_manifest_that_cannot_be_read(deployment: Deployment) -> None:
    owned(deployment, "a")
    broken = owned(deployment, "b")
    deployment.raw_s3.delete_object(Bucket="control", Key=f"manifests/{broken[:8]}/{broken}.json")
    assert counts(ask(deployment, dataset="orders")) == {"promoted": 1, "manifests": 1, "notMoved": 1}


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({}, "promote was given neither files nor a dataset or hours: pass"),
        ({"files": None, "dryRun": True}, "promote was given neither files nor a dataset or hours: pass"),
        ({"files": ["s3://input/a"], "dataset": "orders"}, "promote was given files and a dataset or hours: pass"),
        ({"file": ["s3://input/a"]}, "promote does not know the input field 'file': pass only files, dataset, from"),
        ({"files": "s3://input/a"}, "files = 's3://input/a' is not a valid list: pass"),
        ({"files": []}, "files = [] is not a valid list: pass"),
        ({"files": ["/input/a"]}, "'/input/a' is not a valid S3 URI: pass s3://bucket/key"),
        ({"files": ["s3://input/"]}, "'s3://input/' is not a valid S3 URI"),
        ({"files": [7]}, "7 is not a valid S3 URI"),
        ({"dataset": "order"}, "dataset = 'order' is unknown"),
        ({"from": "yesterday"}, "from = 'yesterday' is not a valid time"),
        ({"files": ["s3://input/a"], "dryRun": "yes"}, "dryRun = 'yes' is neither true nor false"),
    ],
)
def test_an_invalid_input_says_what_to_pass(deployment: Deployment, fields: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInputError) as caught:
        promote(fields, deployment.services)
    assert str(caught.value).startswith(message)


def test_too_much_at_once_is_refused_before_anything_is_done(
    deployment: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    owned(deployment, "a", "b")
    monkeypatch.setattr(selection, "MAX_NAMED", 1)
    monkeypatch.setattr(selection, "MAX_QUEUED_FILES", 1)
    with pytest.raises(InvalidInputError, match="files has 2 entries, one promote takes 1: pass fewer"):
        ask(deployment, "a", "b")
    with pytest.raises(InvalidInputError, match="2 files in 1 manifest of the batch lane, one promote takes 1: pass"):
        ask(deployment, dataset="orders")
    assert deployment.faults.writes == []


def test_messages_beyond_the_maximum_are_omitted(deployment: Deployment) -> None:
    answer = ask(deployment, *(f"{number}" for number in range(MAX_MESSAGES + 3)))
    assert (len(answer["messages"]), answer["omitted"], answer["unknown"]) == (MAX_MESSAGES, 3, MAX_MESSAGES + 3)
