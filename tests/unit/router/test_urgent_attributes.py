"""route and datasets with urgent tags or metadata: what is read of the objects, and what if it cannot be."""

from collections import Counter
from dataclasses import replace
from datetime import timedelta
from typing import Any
from unittest.mock import Mock

import pytest
from botocore.exceptions import ClientError, ReadTimeoutError

from lake.ledger import ArrivalRow
from router.route.decide_lane import WAITS, decide_lanes
from router.route.handler import route
from tests.unit.lake.world import file_of
from tests.unit.router.conftest import Deployment
from tests.unit.router.events import batch, failures, message, s3_record

TAGGED, DESCRIBED = {"tags": ["priority=high"]}, {"metadata": ["priority=high"]}


@pytest.fixture
def at_night(deployment: Deployment) -> Deployment:
    """Files of ``orders`` are urgent by their tags or metadata, those of ``clicks`` by their key only."""
    configure(deployment, {**TAGGED, **DESCRIBED})
    deployment.wait(timedelta(hours=12))
    return deployment


def configure(deployment: Deployment, urgent: dict[str, Any]) -> None:
    rules = [{"name": "orders", "prefix": "orders/", "urgent": urgent}, {"name": "{folder}"}]
    deployment.configure(datasets=rules)


def arrival(deployment: Deployment, name: str) -> ArrivalRow:
    (row,) = deployment.ledger.arrivals.versions("input", f"orders/{name}.json")
    return row


def error_of(operation: str, code: str, status: int) -> ClientError:
    answer: Any = {"Error": {"Code": code, "Message": "test"}, "ResponseMetadata": {"HTTPStatusCode": status}}
    return ClientError(answer, operation)


@pytest.mark.parametrize("versions", [False, True])
def test_tags_and_metadata_of_the_object_decide(at_night: Deployment, versions: bool) -> None:
    if versions:
        at_night.keep_versions()
    # Given objects whose tags or metadata are urgent, and one that has neither
    records = [
        at_night.announced("orders/tagged.json", Tagging="priority=high&team=a"),
        at_night.announced("orders/described.json", Metadata={"Priority": "high"}),
        at_night.announced("orders/plain.json", Tagging="team=a", Metadata={"priority": "low"}),
    ]
    if versions:
        # And a later version of a key, which says nothing about the earlier one
        at_night.announced("orders/tagged.json")
    # When
    answer = route(batch(*(message(str(number), record) for number, record in enumerate(records))), at_night.services)
    # Then
    assert failures(answer) == []
    rows = [arrival(at_night, name) for name in ("tagged", "described", "plain")]
    assert [(row.lane, row.reason) for row in rows] == [
        ("stream", "urgent: priority=high is in its tags"),
        ("stream", "urgent: priority=high is in its metadata"),
        ("batch", WAITS),
    ]
    assert at_night.glue.runs == {"stream-job": {"jr_1": "RUNNING"}}


def test_an_object_that_was_deleted_meanwhile_waits_for_the_night(at_night: Deployment) -> None:
    record = at_night.announced("orders/gone.json", Tagging="priority=high")
    at_night.raw_s3.delete_object(Bucket="input", Key="orders/gone.json")
    assert failures(route(batch(message("m1", record)), at_night.services)) == []
    row, gone = arrival(at_night, "gone"), "were not read: the object was deleted or replaced"
    assert (row.lane, row.reason) == ("batch", f"{WAITS}; its tags {gone} (NoSuchKey); its metadata {gone} (404)")


def test_metadata_of_a_later_object_is_not_taken_for_that_of_the_arrival(at_night: Deployment) -> None:
    configure(at_night, DESCRIBED)
    # Given a bucket without versions, and an object that was replaced
    record = at_night.announced("orders/a.json")
    at_night.raw_s3.put_object(Bucket="input", Key="orders/a.json", Body=b"[]", Metadata={"priority": "high"})
    route(batch(message("m1", record)), at_night.services)
    assert "its metadata were not read: the object was deleted or replaced (412)" in arrival(at_night, "a").reason


@pytest.mark.parametrize(
    ("operation", "code", "status", "reason"),
    [
        ("get_object_tagging", "AccessDenied", 403, "access denied (AccessDenied), needed are s3:GetObjectTagging and"),
        ("head_object", "403", 403, "access denied (403), needed are s3:GetObject and s3:GetObjectVersion"),
        ("head_object", "400", 400, "S3 refused the request (400)"),
        ("get_object_tagging", "NoSuchBucket", 404, "S3 refused the request (NoSuchBucket)"),
    ],
)
def test_a_denied_request_changes_no_lane_and_is_logged_once(
    at_night: Deployment,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    operation: str,
    code: str,
    status: int,
    reason: str,
) -> None:
    records = [at_night.announced(f"orders/{number}.json") for number in range(3)]
    monkeypatch.setattr(at_night.raw_s3, operation, Mock(side_effect=error_of(operation, code, status)))
    # When
    answer = route(batch(*(message(str(number), record) for number, record in enumerate(records))), at_night.services)
    # Then every arrival has the lane of the other rules, and its reason says what was not read
    assert failures(answer) == []
    rows = [arrival(at_night, str(number)) for number in range(3)]
    assert [(row.lane, row.reason.count(f"were not read: {reason}")) for row in rows] == [("batch", 1)] * 3
    # And the operator reads once what is missing
    (line,) = [vars(record) for record in caplog.records if "not read" in record.message]
    assert (line["files"], line["reason"].startswith(reason), code in line["error"]) == (3, True, True)


@pytest.mark.parametrize(
    "error", [error_of("GetObjectTagging", "SlowDown", 503), ReadTimeoutError(endpoint_url="https://loopback")]
)
def test_a_throttled_request_returns_its_own_message_only(
    at_night: Deployment, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    # Given a file whose tags decide, one whose key decides, and one of another dataset
    tagged = at_night.announced("orders/a.json", Tagging="priority=high")
    records = {"tags": tagged, "key": s3_record("orders/urgent/b.json"), "other": s3_record("clicks/c.json")}
    event = batch(*(message(name, record) for name, record in records.items()))
    monkeypatch.setattr(at_night.raw_s3, "get_object_tagging", Mock(side_effect=error))
    # When, Then
    assert failures(route(event, at_night.services)) == ["tags"]
    assert at_night.ledger.arrivals.versions("input", "orders/a.json") == []
    assert arrival(at_night, "urgent/b").lane == "stream"
    # When S3 answers again, it is urgent
    monkeypatch.undo()
    assert failures(route(event, at_night.services)) == []
    assert arrival(at_night, "a").lane == "stream"


@pytest.mark.parametrize(
    ("urgent", "expected"), [({}, {}), ({**TAGGED, **DESCRIBED}, {"get_object_tagging": 2500, "head_object": 2500})]
)
def test_requests_for_10_000_messages(deployment: Deployment, urgent: dict[str, Any], expected: dict[str, int]) -> None:
    # Given files of which one in four is urgent by its key, one by its size, and one is of another dataset
    configure(deployment, {**urgent, "max_bytes": 10})
    kinds = {"orders/urgent": 100, "orders/small": 1, "clicks": 100, "orders": 100}
    files = [file_of(f"{folder}/{number}.json", size) for number in range(2500) for folder, size in kinds.items()]
    s3 = Mock(**{"get_object_tagging.return_value": {"TagSet": []}, "head_object.return_value": {"Metadata": {}}})
    services = replace(deployment.services, s3=s3)
    # When, Then
    assert len(decide_lanes(services, files, deployment.now)) == 10_000
    assert Counter(name for name, *_ in s3.method_calls) == expected
