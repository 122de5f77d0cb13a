"""decide_lane: tables of cases; how urgent tags or metadata of objects are read, and what follows if they cannot be.

Clocks are UTC; the deployment is in Berlin.
"""

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from unittest.mock import Mock
from uuid import UUID

import pytest
from botocore.exceptions import ClientError, ReadTimeoutError

from lake.layout import canary_key
from lake.ledger import ArrivalRow
from lake.manifest import Lane
from lake.settings import parse_settings
from lake.settings.records import FAILED_RECORDS
from router.route.decide_lane import NOT_DELIVERED, WAITS, Attribute, LaneDecision, NotRead, decide_lane, decide_lanes
from router.route.handler import route
from tests.unit.lake.world import file_of
from tests.unit.router.conftest import Deployment
from tests.unit.router.events import batch, failures, message, s3_record

BERLIN = {"stage": "test", "time_zone": "Europe/Berlin"}


def decided_at(key: str, now: str, *, size: int = 100, **settings: Any) -> tuple[Any, ...]:
    body = {**BERLIN, **settings}
    instant = datetime.fromisoformat(now).replace(tzinfo=UTC)
    decision = decide_lane(file_of(key, size), parse_settings(body), instant)
    assert decision.urgent == decision.reason.startswith("urgent:")
    return decision.lane, decision.dataset, decision.reason


@pytest.mark.parametrize(
    ("key", "dataset"),
    [
        ("orders/a.ndjson", "orders"),
        ("orders/2026/11/a.jsonl.gz", "orders"),
        ("orders/a.ndjson.zst", "orders"),
        ("orders/A.NDJSON", "orders"),
        ("orders/ü b+%41.json", "orders"),
        ("a1_b/line\nbreak.ndjson", "a1_b"),
    ],
)
def test_the_folder_names_the_dataset(key: str, dataset: str) -> None:
    assert decided_at(key, "2026-11-21T12:00") == (Lane.BATCH, dataset, WAITS)


@pytest.mark.parametrize(
    ("key", "reason"),
    [
        (
            "orders/a.csv",
            "the name ends in none of .ndjson, .jsonl, .json, .ndjson.gz, .jsonl.gz, .json.gz, .ndjson.bz2",
        ),
        ("orders/a.ndjson.xz", "the name ends in none of"),
        # Spark and Hadoop copy such a file to its final key, which is an arrival of its own.
        ("orders/day/_temporary/0/_temporary/attempt_1/part-0.json", "a temporary file"),
        ("orders/.spark-staging-0a1b/day=1/part-0.json", "a temporary file"),
        ("_temporary/0/task_1/dataset=orders/part-0.json", "a temporary file"),
        ("orders/2026/", "a folder marker"),
        ("a.ndjson", "no rule of [[datasets]]"),
        ("/a.ndjson", "the folder '' cannot become a dataset name"),
        (f"{'x' * 64}/a.ndjson", "the folder 'xxx"),
    ],
)
def test_keys_that_no_rule_selects_are_ignored(key: str, reason: str) -> None:
    lane, dataset, why = decided_at(key, "2026-11-20T12:00")
    assert (lane, dataset) == (None, None)
    assert why.startswith(reason)


SUNDAY, FRIDAY_NIGHT = {"hours": ["02:30-03:30"], "days": ["sun"]}, {"hours": ["22:00-06:00"], "days": ["fri"]}


@pytest.mark.parametrize(
    ("peak", "now", "lane"),
    [
        # By default from 8 to 20 o'clock on working days.
        ({}, "2026-11-20T06:59:59", Lane.BATCH),
        ({}, "2026-11-20T07:00:00", Lane.STREAM),
        ({}, "2026-11-20T18:59:59", Lane.STREAM),
        ({}, "2026-11-20T19:00:00", Lane.BATCH),
        ({}, "2026-11-21T12:00:00", Lane.BATCH),
        # Sunday 29 March 2026: 01:59 is followed by 03:00.
        (SUNDAY, "2026-03-29T00:59", Lane.BATCH),
        (SUNDAY, "2026-03-29T01:00", Lane.STREAM),
        (SUNDAY, "2026-03-29T01:30", Lane.BATCH),
        # Sunday 25 October 2026: 02:00 to 03:00 occurs twice, the second time in winter time.
        (SUNDAY, "2026-10-25T00:30", Lane.STREAM),
        (SUNDAY, "2026-10-25T01:00", Lane.BATCH),
        (SUNDAY, "2026-10-25T01:30", Lane.STREAM),
        (SUNDAY, "2026-10-25T02:30", Lane.BATCH),
        # A window over midnight belongs to the day on which it begins.
        (FRIDAY_NIGHT, "2026-11-20T20:59", Lane.BATCH),
        (FRIDAY_NIGHT, "2026-11-20T21:00", Lane.STREAM),
        (FRIDAY_NIGHT, "2026-11-21T04:59", Lane.STREAM),
        (FRIDAY_NIGHT, "2026-11-21T05:00", Lane.BATCH),
        (FRIDAY_NIGHT, "2026-11-20T04:00", Lane.BATCH),
        (FRIDAY_NIGHT, "2026-11-21T22:00", Lane.BATCH),
        ({"hours": ["20:00-24:00"], "days": ["fri"]}, "2026-11-20T22:59", Lane.STREAM),
        ({"hours": ["20:00-24:00"], "days": ["fri"]}, "2026-11-20T23:00", Lane.BATCH),
        ({"hours": []}, "2026-11-20T12:00", Lane.BATCH),
        ({"days": []}, "2026-11-20T12:00", Lane.BATCH),
    ],
)
def test_windows_follow_the_wall_clock(peak: dict[str, list[str]], now: str, lane: Lane) -> None:
    assert decided_at("orders/a.json", now, peak=peak)[0] == lane


def test_the_window_that_it_is_in_is_the_reason() -> None:
    peak = {"hours": ["06:00-09:00", "12:00-14:00"]}
    assert decided_at("orders/a.json", "2026-11-20T12:30", peak=peak)[2] == "peak hours 12:00-14:00 Europe/Berlin"


def test_a_dataset_can_stay_out_of_peak() -> None:
    rules = [{"name": "archive", "prefix": "archive/", "peak": False}, {"name": "{folder}"}]
    lanes = [decided_at(key, "2026-11-20T12:00", datasets=rules)[0] for key in ("archive/a.json", "orders/a.json")]
    assert lanes == [Lane.BATCH, Lane.STREAM]


def test_an_urgent_key_has_priority_over_everything_but_an_ignored_key() -> None:
    overnight = "2026-11-21T23:00"
    urgent = decided_at("orders/urgent/a.json", overnight)
    assert urgent == (Lane.STREAM, "orders", "urgent: the key matches */urgent/*")
    assert decided_at("orders/urgent/a.csv", overnight)[0] is None
    assert decided_at("orders/URGENT/a.json", overnight)[0] == Lane.BATCH


@pytest.mark.parametrize(
    ("suffix", "concatenated", "limit"),
    [
        ("", False, 4 * 40_000_000 * 300),
        ("", True, 40_000_000 * 300),
        (".gz", False, 15_750_000 * 300),
        (".gz", True, 15_750_000 * 300),
    ],
)
@pytest.mark.parametrize("larger", [0, 1])
def test_an_urgent_key_does_not_bring_a_file_into_the_stream_that_it_cannot_convert_in_time(
    suffix: str, concatenated: bool, limit: int, larger: int
) -> None:
    # Given 4 cores, and a goal of 300 seconds; a compressed file, and one of concatenated objects, is read by one core
    key, size = f"orders/urgent/a.json{suffix}", limit + larger
    settings = {"stream": {"max_workers": 2}, "convert": {"concatenated": concatenated}}
    decision = decided_at(key, "2026-11-20T12:00", size=size, **settings)
    expected = f"larger than what the stream lane converts in time ({size} > {limit} bytes)"
    assert decision == (Lane.BATCH, "orders", expected) if larger else decision[0] == Lane.STREAM


TAGS, METADATA = Attribute.TAGS, Attribute.METADATA
SATURDAY, FRIDAY = datetime(2026, 11, 21, 12, tzinfo=UTC), datetime(2026, 11, 20, 12, tzinfo=UTC)
BOTH = {"tags": ["priority=high", "stage=*", "path=a=b"], "metadata": ["feed=live*"]}
GONE, DENIED = NotRead("gone (404)"), NotRead("access denied (403)")
NO_TAGS = "its tags were not read: gone (404)"


def decided(
    urgent: dict[str, Any],
    read: Callable[[Attribute], Any] = lambda _: {},
    *,
    size: int = 100,
    now: datetime = SATURDAY,
) -> LaneDecision:
    rules = [{"name": "orders", "prefix": "orders/", "urgent": urgent}, {"name": "{folder}"}]
    settings = parse_settings({"stage": "test", "datasets": rules})
    return decide_lane(file_of("orders/a.json", size), settings, now, read)


@pytest.mark.parametrize(
    ("urgent", "size", "is_urgent"),
    [
        ({}, 0, False),
        ({"max_bytes": 100}, 100, True),
        ({"max_bytes": 100}, 101, False),
        ({"min_bytes": 100}, 99, False),
        ({"min_bytes": 100}, 100, True),
        ({"min_bytes": 2, "max_bytes": 3}, 4, False),
    ],
)
def test_a_size_can_be_urgent(urgent: dict[str, Any], size: int, is_urgent: bool) -> None:
    reason = f"urgent: its size ({size} bytes) is within datasets.urgent" if is_urgent else WAITS
    decision = decided(urgent, size=size)
    assert (decision.lane, decision.reason) == (Lane.STREAM if is_urgent else Lane.BATCH, reason)


@pytest.mark.parametrize(
    ("attributes", "reason"),
    [
        ({TAGS: {"priority": "high"}}, "urgent: priority=high is in its tags"),
        ({TAGS: {"priority": "higher"}, METADATA: {}}, WAITS),
        ({TAGS: {"Priority": "high", "x": "priority=high"}, METADATA: {}}, WAITS),
        ({TAGS: {"stage": ""}}, "urgent: stage=* is in its tags"),
        ({TAGS: {"path": "a=b"}}, "urgent: path=a=b is in its tags"),
        ({TAGS: {}, METADATA: {}}, WAITS),
        ({TAGS: {}, METADATA: {"feed": "live-1"}}, "urgent: feed=live* is in its metadata"),
        ({TAGS: {}, METADATA: {"priority": "high"}}, WAITS),
        ({TAGS: GONE, METADATA: DENIED}, f"{WAITS}; {NO_TAGS}; its metadata were not read: access denied (403)"),
        ({TAGS: DENIED, METADATA: {"feed": "live"}}, "urgent: feed=live* is in its metadata"),
    ],
)
def test_tags_are_read_first_and_metadata_only_if_they_do_not_decide(
    attributes: dict[Attribute, Any], reason: str
) -> None:
    # Given only what is needed, when each can be read once
    left = dict(attributes)
    is_urgent = reason.startswith("urgent: ")
    lane = Lane.STREAM if is_urgent else Lane.BATCH
    assert decided(BOTH, left.pop) == LaneDecision(lane, "orders", reason, urgent=is_urgent)
    # Then each was read
    assert left == {}


def test_a_file_of_peak_hours_is_read_as_well_and_falls_back_to_them() -> None:
    # The order of the rules is the same at all hours.
    unknown = decided(BOTH, {TAGS: GONE, METADATA: {}}.__getitem__, now=FRIDAY)
    assert (unknown.lane, unknown.reason) == (Lane.STREAM, f"peak hours 08:00-20:00 UTC; {NO_TAGS}")


NAME = f"2026/11/23/10/hybrid-router-prod-web-1-2026-11-23-10-15-00-{UUID(int=1)}"
"""As in the Amazon Data Firehose Developer Guide, "Configure Amazon S3 object name format"."""


def test_default_names_of_firehose_are_routed_as_the_reason_states() -> None:
    # Given an object of the user's own delivery stream, which compresses nothing and has no FileExtension
    lane, _, reason = decided_at(f"clicks/{NAME}", "2026-11-23T23:00")
    assert lane is None
    assert reason.endswith('add its ending to input.suffixes, or "" to take every name')
    # When, Then
    suffixes = {"suffixes": [".json", ""]}
    assert decided_at(f"clicks/{NAME}", "2026-11-23T23:00", input=suffixes)[1] == "clicks"
    assert decided_at("clicks/folder/", "2026-11-23T23:00", input=suffixes)[1] is None


@pytest.mark.parametrize("extension", ["", ".ndjson", ".ndjson.gz"])
def test_what_was_not_delivered_is_ignored_by_every_rule_and_so_is_a_canary(extension: str) -> None:
    everything: Any = {"datasets": [{"name": "rest"}], "urgent": {"keys": ["*"]}}
    key = f"{FAILED_RECORDS}web/processing-failed/{NAME}{extension}"
    assert decided_at(key, "2026-11-23T10:00", **everything) == (None, None, NOT_DELIVERED)
    assert decided_at(canary_key(f"{NAME}{extension}"), "2026-11-23T10:00", **everything)[:2] == (None, None)


TAGGED, DESCRIBED = {"tags": ["priority=high"]}, {"metadata": ["priority=high"]}


@pytest.fixture
def at_night(deployment: Deployment) -> Deployment:
    """Files of ``orders`` are urgent by their tags or metadata, files of ``clicks`` only by their key."""
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
        # And a later version of a key, which has no influence on the earlier one
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


def test_metadata_of_a_later_object_is_not_attributed_to_the_arrival(at_night: Deployment) -> None:
    configure(at_night, DESCRIBED)
    # Given a bucket without versions, and an object that was replaced
    record = at_night.announced("orders/a.json")
    at_night.raw_s3.put_object(Bucket="input", Key="orders/a.json", Body=b"[]", Metadata={"priority": "high"})
    route(batch(message("m1", record)), at_night.services)
    assert "its metadata were not read: the object was deleted or replaced (412)" in arrival(at_night, "a").reason


NEEDED = "allow s3:GetObjectTagging and s3:GetObjectVersionTagging"


@pytest.mark.parametrize(
    ("operation", "code", "status", "reason"),
    [
        ("get_object_tagging", "AccessDenied", 403, f"access denied (AccessDenied), {NEEDED}"),
        ("head_object", "403", 403, "access denied (403), allow s3:GetObject and s3:GetObjectVersion"),
        ("head_object", "400", 400, "S3 refused the request (400)"),
        ("get_object_tagging", "NoSuchBucket", 404, "S3 refused the request (NoSuchBucket)"),
    ],
)
def test_a_denied_request_changes_no_lane_and_is_logged_once(
    at_night: Deployment,
    caplog: pytest.LogCaptureFixture,
    operation: str,
    code: str,
    status: int,
    reason: str,
) -> None:
    records = [at_night.announced(f"orders/{number}.json") for number in range(3)]
    error = error_of(operation.title().replace("_", ""), code, status)
    at_night.patch.setattr(at_night.raw_s3, operation, Mock(side_effect=error))
    # When
    answer = route(batch(*(message(str(number), record) for number, record in enumerate(records))), at_night.services)
    # Then the other rules decide the lane of every arrival, and its reason names what was not read
    assert failures(answer) == []
    rows = [arrival(at_night, str(number)) for number in range(3)]
    assert [(row.lane, row.reason.count(f"were not read: {reason}")) for row in rows] == [("batch", 1)] * 3
    # And the operator's log names once what is missing
    (line,) = [vars(record) for record in caplog.records if "not read" in record.message]
    assert (line["files"], line["reason"], code in line["error"]) == (3, reason, True)


@pytest.mark.parametrize(
    "error", [error_of("GetObjectTagging", "SlowDown", 503), ReadTimeoutError(endpoint_url="https://loopback")]
)
def test_a_throttled_request_returns_its_own_message_only(at_night: Deployment, error: Exception) -> None:
    # Given a file whose tags decide, one whose key decides, and one of another dataset
    tagged = at_night.announced("orders/a.json", Tagging="priority=high")
    records = {"tags": tagged, "key": s3_record("orders/urgent/b.json"), "other": s3_record("clicks/c.json")}
    event = batch(*(message(name, record) for name, record in records.items()))
    at_night.patch.setattr(at_night.raw_s3, "get_object_tagging", Mock(side_effect=error))
    # When, Then
    assert failures(route(event, at_night.services)) == ["tags"]
    assert at_night.ledger.arrivals.versions("input", "orders/a.json") == []
    assert arrival(at_night, "urgent/b").lane == "stream"
    # When S3 answers again, the file is urgent
    at_night.patch.undo()
    assert failures(route(event, at_night.services)) == []
    assert arrival(at_night, "a").lane == "stream"


@pytest.mark.parametrize(
    ("urgent", "expected"), [({}, {}), ({**TAGGED, **DESCRIBED}, {"get_object_tagging": 2500, "head_object": 2500})]
)
def test_requests_for_10_000_messages(deployment: Deployment, urgent: dict[str, Any], expected: dict[str, int]) -> None:
    # Given files: one in four is urgent by its key, one by its size, and one is of another dataset
    configure(deployment, {**urgent, "max_bytes": 10})
    kinds = {"orders/urgent": 100, "orders/small": 1, "clicks": 100, "orders": 100}
    files = [file_of(f"{folder}/{number}.json", size) for number in range(2500) for folder, size in kinds.items()]
    s3 = Mock(**{"get_object_tagging.return_value": {"TagSet": []}, "head_object.return_value": {"Metadata": {}}})
    services = replace(deployment.services, s3=s3)
    # When, Then
    assert len(decide_lanes(services, files, deployment.now)) == 10_000
    assert Counter(name for name, *_ in s3.method_calls) == expected
