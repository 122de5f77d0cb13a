"""route and datasets with urgent tags or metadata: what is read of the objects, and what if it cannot be."""

from collections import Counter
from dataclasses import replace
from datetime import timedelta
from typing import Any
from unittest.mock import Mock

import pytest
from botocore.exceptions import ClientError, ReadTimeoutError

from lake.ledger import ArrivalRow
from lake.manifest import ObjectVersion
from router.route.decide_lanes import decide_lanes
from router.route.handler import route
from tests.unit.lake.world import file_of
from tests.unit.router.conftest import Deployment
from tests.unit.router.events import batch, failures, message, s3_record

WAITS = "waits for the overnight run"
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


def put(deployment: Deployment, name: str, **options: Any) -> dict[str, Any]:
    """An object, and the record of its event."""
    answer = deployment.raw_s3.put_object(Bucket="input", Key=f"orders/{name}.json", Body=b"{}\n", **options)
    facts = {"eTag": answer["ETag"].strip('"'), "versionId": answer.get("VersionId"), "size": 3}
    return s3_record(f"orders/{name}.json", **facts)


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
        put(at_night, "tagged", Tagging="priority=high&team=a"),
        put(at_night, "described", Metadata={"Priority": "high"}),
        put(at_night, "plain", Tagging="team=a", Metadata={"priority": "low"}),
    ]
    if versions:
        # And a later version of a key, which says nothing about the earlier one
        put(at_night, "tagged")
    # When
    answer = route(batch(*(message(str(number), record) for number, record in enumerate(records))), at_night.services)
    # Then
    assert failures(answer) == []
    found = {name: (arrival(at_night, name).lane, arrival(at_night, name).reason) for name in ("tagged", "described")}
    assert found["tagged"] == ("stream", "urgent: priority=high is in its tags")
    assert found["described"] == ("stream", "urgent: priority=high is in its metadata")
    assert (arrival(at_night, "plain").lane, arrival(at_night, "plain").reason) == ("batch", WAITS)
    assert at_night.glue.runs == {"stream-job": {"jr_1": "RUNNING"}}


def test_an_object_that_was_deleted_meanwhile_waits_for_the_night(at_night: Deployment) -> None:
    record = put(at_night, "gone", Tagging="priority=high")
    at_night.raw_s3.delete_object(Bucket="input", Key="orders/gone.json")
    assert failures(route(batch(message("m1", record)), at_night.services)) == []
    row = arrival(at_night, "gone")
    gone = "were not read: the object was deleted or replaced"
    assert (row.lane, row.reason) == ("batch", f"{WAITS}; its tags {gone} (NoSuchKey); its metadata {gone} (404)")


def test_metadata_of_a_later_object_is_not_taken_for_that_of_the_arrival(at_night: Deployment) -> None:
    configure(at_night, DESCRIBED)
    # Given a bucket without versions, and an object that was replaced
    record = put(at_night, "a")
    at_night.raw_s3.put_object(Bucket="input", Key="orders/a.json", Body=b"[]", Metadata={"priority": "high"})
    route(batch(message("m1", record)), at_night.services)
    assert "its metadata were not read: the object was deleted or replaced (412)" in arrival(at_night, "a").reason


@pytest.mark.parametrize(
    ("operation", "code", "status", "reason"),
    [
        (
            "get_object_tagging",
            "AccessDenied",
            403,
            "access denied (AccessDenied), needed are s3:GetObjectTagging and s3:GetObjectVersionTagging",
        ),
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
    records = [put(at_night, str(number)) for number in range(3)]
    monkeypatch.setattr(at_night.raw_s3, operation, Mock(side_effect=error_of(operation, code, status)))
    # When
    answer = route(batch(*(message(str(number), record) for number, record in enumerate(records))), at_night.services)
    # Then every arrival has the lane of the other rules, and its reason says what was not read
    assert failures(answer) == []
    rows = [arrival(at_night, str(number)) for number in range(3)]
    assert [(row.lane, row.reason.count(f"were not read: {reason}")) for row in rows] == [("batch", 1)] * 3
    # And the operator reads once what is missing
    (line,) = [vars(record) for record in caplog.records if "not read" in record.message]
    assert (line["files"], line["reason"]) == (3, reason)
    assert code in line["error"]


@pytest.mark.parametrize(
    "error", [error_of("GetObjectTagging", "SlowDown", 503), ReadTimeoutError(endpoint_url="https://loopback")]
)
def test_a_throttled_request_returns_its_own_message_only(
    at_night: Deployment, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    # Given a file whose tags decide, one whose key decides, and one of another dataset
    records = {"tags": put(at_night, "a", Tagging="priority=high"), "key": put(at_night, "urgent/b")}
    records["other"] = s3_record("clicks/c.json")
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


def arrivals(count: int) -> list[ObjectVersion]:
    """One file in four is urgent by its key, one by its size, one is of another dataset."""
    keys = ("orders/urgent/{}.json", "orders/small/{}.json", "clicks/{}.json", "orders/{}.json")
    return [file_of(keys[number % 4].format(number), size=1 if number % 4 == 1 else 100) for number in range(count)]


@pytest.mark.parametrize(
    ("urgent", "expected"), [({}, {}), ({**TAGGED, **DESCRIBED}, {"get_object_tagging": 2500, "head_object": 2500})]
)
def test_requests_for_10_000_messages(deployment: Deployment, urgent: dict[str, Any], expected: dict[str, int]) -> None:
    configure(deployment, {**urgent, "max_bytes": 10})
    s3 = Mock(**{"get_object_tagging.return_value": {"TagSet": []}, "head_object.return_value": {"Metadata": {}}})
    services = replace(deployment.services, s3=s3)
    decisions = decide_lanes(services, arrivals(10_000), deployment.now)
    assert len(decisions) == 10_000
    assert Counter(name for name, *_ in s3.method_calls) == expected
