"""route: a batch of messages, from the event to the ledger and back; no event is lost, no message blocks another."""

import json
import weakref
from collections import UserDict
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from typing import Any
from unittest.mock import Mock, patch

import pytest
from aws_lambda_powertools.utilities.data_classes.sqs_event import SQSRecord
from botocore.exceptions import ClientError, ReadTimeoutError

from infra.arrivals import INVISIBLE_TIMEOUTS, MAX_RECEIVES
from infra.functions import ROUTE_TIMEOUT_SECONDS
from lake.errors import InvalidInputError, TransientError
from lake.layout import INBOX, URGENT, canary_key, manifest_of_pointer
from lake.ledger import State
from lake.manifest import Lane, ObjectVersion
from lake.manifest_documents import read_manifest
from lake.settings.records import FAILED_RECORDS
from router.requests.backfill import backfill
from router.route import handler as route_module
from router.route.decide_lane import NOT_DELIVERED
from router.route.events import VersionLookup, parse_events, pause_seconds
from router.route.handler import route
from router.stream.runs import FailedStartsError
from router.telemetry import metrics
from tests.unit.lake.world import PARTITION
from tests.unit.router.conftest import Deployment
from tests.unit.router.events import batch, failures, message, raw_message, s3_record


def test_urgent_files_and_those_at_peak_go_through_the_stream_and_are_acknowledged(deployment: Deployment) -> None:
    # Given: Friday morning in Berlin, peak files and an urgent one of the same dataset and hour
    records = [s3_record(f"orders/{name}") for name in ("a.ndjson", "urgent/c.ndjson", "b.ndjson.gz")]
    event = batch(message("m1", *records[:2]), message("m2", records[2]))
    # When
    assert failures(route(event, deployment.services)) == []
    # Then: one manifest holds both peak files, the urgent one has its own; each has a pointer, and the stream runs
    rows = {row.urgent: row for row in deployment.ledger.manifests.open(Lane.STREAM, State.QUEUED)}
    manifests = {urgent: read_manifest(deployment.s3, "control", row, ("input",)) for urgent, row in rows.items()}
    assert {urgent: [file.key for file in found.files] for urgent, found in manifests.items()} == {
        False: ["orders/a.ndjson", "orders/b.ndjson.gz"],
        True: ["orders/urgent/c.ndjson"],
    }
    assert manifests[True].urgent
    assert (rows[False].partition, rows[False].bytes, rows[False].files) == (PARTITION, 200, 2)
    assert [rows[False].compressed_bytes, rows[True].compressed_bytes] == [100, 0]
    [urgent] = deployment.keys("control", f"{INBOX}{URGENT}")
    assert manifest_of_pointer(urgent) == rows[True].id
    [pointer] = set(deployment.keys("control", "inbox/")) - {urgent}
    body = deployment.raw_s3.get_object(Bucket="control", Key=pointer)["Body"].read()
    assert json.loads(body) == {"manifest": rows[False].id}
    assert deployment.glue.runs == {"stream-job": {"jr_1": "RUNNING"}}
    arrival = deployment.ledger.arrivals.get(manifests[False].files[0])
    assert arrival is not None
    assert (arrival.manifest, arrival.reason) == (rows[False].id, "peak hours 08:00-20:00 Europe/Berlin")


def test_files_outside_of_peak_wait_and_start_nothing(deployment: Deployment) -> None:
    deployment.wait(timedelta(hours=12))
    event = batch(message("m1", s3_record("orders/a.ndjson", time="2025-12-31T23:59:59.999Z")))
    assert failures(route(event, deployment.services)) == []
    # The partition is the hour of the event, not of the routing.
    rows = [(row.lane, str(row.partition)) for row in deployment.waiting()]
    assert rows == [("batch", "orders#2025-12-31T23")]
    assert deployment.keys("control", "inbox/") == []
    assert deployment.glue.runs == {}


def test_a_foreign_bucket_is_ignored(deployment: Deployment) -> None:
    route(batch(message("m1", s3_record("orders/a.ndjson", bucket="other"))), deployment.services)
    [row] = deployment.ledger.arrivals.versions("other", "orders/a.ndjson")
    assert row.reason == "the bucket other is not the input of this deployment: copy its data to input"


@pytest.mark.parametrize(
    ("error", "tries"),
    [
        (TransientError("no room"), 2),
        (ReadTimeoutError(endpoint_url="glue"), 2),
        (FailedStartsError("job", 3, "FAILED", None), 0),
    ],
)
def test_an_event_of_an_owned_file_is_redelivered_and_does_not_end_among_the_dead_letters(
    deployment: Deployment, error: Exception, tries: int
) -> None:
    # Given a stream that cannot be started
    deployment.patch.setattr("router.stream.runs.start_run", Mock(side_effect=error))
    event = s3_record("orders/a.ndjson")
    # When its event is redelivered repeatedly, now as a duplicate, Then the sweep finally starts the stream
    answers = [
        failures(route(batch(raw_message("m1", json.dumps({"Records": [event]}), count)), deployment.services))
        for count in range(1, 5)
    ]
    assert answers == [["m1"]] * tries + [[]] * (4 - tries)


def test_what_was_not_acknowledged_is_redelivered_soon_and_then_less_often(deployment: Deployment) -> None:
    # Given messages that cannot be routed, delivered for the first time and later, and a message that can
    sqs: Any = Mock()
    sqs.change_message_visibility_batch.return_value = {}
    deployment.services = replace(deployment.services, sqs=sqs, arrivals_queue="url")
    bad = [raw_message(f"bad-{count}", "no JSON", count) for count in range(1, 13)]
    # When
    answer = route(batch(message("good", s3_record("orders/a.ndjson")), *bad), deployment.services)
    # Then each is redelivered after its pause, and the pauses are set in requests of ten
    assert failures(answer) == [f"bad-{count}" for count in range(1, 13)]
    calls = sqs.change_message_visibility_batch.call_args_list
    assert sorted(len(call.kwargs["Entries"]) for call in calls) == [2, 10]
    pauses = {item["ReceiptHandle"]: item["VisibilityTimeout"] for call in calls for item in call.kwargs["Entries"]}
    assert [pauses[f"receipt-of-bad-{count}"] for count in range(1, 13)] == [10, 60, *[300] * 10]
    # When the queue refuses a pause, Then the messages are redelivered after the queue's timeout
    sqs.change_message_visibility_batch.side_effect = ClientError({"Error": {"Code": "AccessDenied"}}, "Change")
    assert len(failures(route(batch(*bad), deployment.services))) == 12


def test_an_outage_of_an_hour_fills_no_dead_letters() -> None:
    # Given the pauses after failures, and the pauses after invocations that have died
    pauses = [pause_seconds(count) for count in range(1, MAX_RECEIVES)]
    died = [INVISIBLE_TIMEOUTS * ROUTE_TIMEOUT_SECONDS] * (MAX_RECEIVES - 1)
    # Then the last delivery is after the outage, and an invocation that works has its full time
    assert min(sum(pauses), sum(died)) >= 3600
    assert INVISIBLE_TIMEOUTS > 1


@pytest.mark.parametrize("state", ["fresh", "stale", "stopping"])
def test_only_a_fresh_heartbeat_of_a_continuing_run_replaces_a_start(deployment: Deployment, state: str) -> None:
    deployment.ledger.stream.record_heartbeat("jr_9", deployment.now - timedelta(minutes=5 * (state == "stale")))
    deployment.ledger.stream.request_stop(state == "stopping")
    route(batch(message("m1", s3_record("orders/a.ndjson"))), deployment.services)
    assert deployment.glue.runs == ({} if state == "fresh" else {"stream-job": {"jr_1": "RUNNING"}})


def test_a_message_that_cannot_be_routed_fails_alone(deployment: Deployment) -> None:
    # Given: a message whose key is valid JSON but cannot be encoded, among others
    record = s3_record("orders/x.ndjson")
    record["s3"]["object"]["key"] = "orders/\ud800.ndjson"
    good = [message(f"m{number}", s3_record(f"orders/{number}.ndjson")) for number in range(6)]
    event = batch(*good[:3], message("bad", record), *good[3:])
    # When, Then
    assert failures(route(event, deployment.services)) == ["bad"]
    rows = deployment.ledger.manifests.open(Lane.STREAM, State.QUEUED)
    assert sum(row.files for row in rows) == len(good)
    # And after a transient fault, which concerns all of them, no part is tried separately
    with patch.object(route_module, "route_arrivals", Mock(side_effect=TransientError("later"))) as calls:
        assert len(failures(route(event, deployment.services))) == len(good) + 1
    assert calls.call_count == 1


KEY = "clicks/a.json"


def send(deployment: Deployment, record: dict[str, Any]) -> list[str]:
    deployment.configure(peak={"hours": []})
    return failures(route(batch(message("m1", record)), deployment.services))


@pytest.mark.parametrize("versions", [False, True])
def test_a_listing_knows_the_version_that_an_event_did_not_name(deployment: Deployment, versions: bool) -> None:
    if versions:
        deployment.keep_versions()
    record = deployment.announced(KEY)
    deployment.put(KEY + "l")
    version = record["s3"]["object"].pop("versionId", None)
    assert send(deployment, record) == []
    [file] = deployment.waiting_files()
    assert (file.key, file.etag, file.version_id) == (KEY, record["s3"]["object"]["eTag"], version)
    event = {"action": "find", "request": {"dataset": "clicks", "from": "2000-01-01", "to": "2100-01-01"}}
    result = backfill(event, deployment.services)
    assert (result["found"], result["known"], result["recorded"]) == (2, 1, 1)


def test_an_event_of_the_time_before_versions_names_the_null_version(deployment: Deployment) -> None:
    # Given an object that was put before versions were switched on, and was overwritten after that
    older = deployment.announced(KEY)
    deployment.keep_versions()
    newer = deployment.announced(KEY, b"newer\n")
    # When both events are delivered
    assert send(deployment, older) == send(deployment, newer) == []
    # Then each version is an arrival
    versions = {file.version_id for file in deployment.waiting_files()}
    assert versions == {None, newer["s3"]["object"]["versionId"]}


def test_one_version_of_an_object_at_a_time_is_in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    alive: list[weakref.ref[Any]] = []

    def versions(*_: object) -> Iterator[Any]:
        for number in range(9):
            version = UserDict(ETag="other", VersionId=str(number))
            alive.append(weakref.ref(version))
            yield version
            assert sum(item() is not None for item in alive) <= 2

    monkeypatch.setattr("router.route.events.list_versions", versions)
    services = Mock(resources=Mock(input_bucket="input"), s3=Mock(get_bucket_versioning=lambda **_: {"Status": ""}))
    [announced] = parse_events(SQSRecord(message("m1", s3_record(KEY, versionId=None))))
    assert VersionLookup(services).complete(announced) == announced.file
    assert len(alive) == 9


def test_a_complete_event_costs_no_request_for_its_version(deployment: Deployment) -> None:
    deployment.keep_versions()
    record = deployment.announced(KEY)
    deployment.patch.delattr(deployment.raw_s3.__class__, "get_bucket_versioning", raising=False)
    deployment.patch.delattr(deployment.raw_s3.__class__, "list_object_versions", raising=False)
    assert send(deployment, record) == []
    assert [file.version_id for file in deployment.waiting_files()] == [record["s3"]["object"]["versionId"]]


@pytest.mark.parametrize("operation", ["get_bucket_versioning", "list_object_versions"])
def test_the_events_of_an_invocation_wait_once_for_an_s3_that_does_not_answer(
    deployment: Deployment, operation: str
) -> None:
    # Given a busy S3, three events that name no version, and one event that names one
    deployment.configure(peak={"hours": []})
    deployment.keep_versions()
    records = [s3_record(f"clicks/{number}.json", versionId=None if number < 3 else "v1") for number in range(4)]
    busy = Mock(side_effect=ClientError({"Error": {"Code": "SlowDown", "Message": ""}}, operation))
    deployment.patch.setattr(deployment.raw_s3, operation, busy)
    event = batch(*(message(f"m{number}", record) for number, record in enumerate(records)))
    # When, Then the last event is routed, and S3 was called once
    assert failures(route(event, deployment.services)) == ["m0", "m1", "m2"]
    assert busy.call_count == 1
    assert [file.key for file in deployment.waiting_files()] == ["clicks/3.json"]


def parsed(*records: dict[str, Any]) -> list[ObjectVersion]:
    return [announced.file for announced in parse_events(SQSRecord(message("m1", *records)))]


@pytest.mark.parametrize(
    "key",
    [
        "orders/a +ü%.ndjson",
        "orders/%41.ndjson",
        "orders/😀.ndjson",
        "orders/line\nbreak.ndjson",
        "orders/" + "😀" * 252 + ".ndjson",
    ],
)
def test_a_key_is_what_was_put(key: str) -> None:
    assert [file.key for file in parsed(s3_record(key))] == [key]


@pytest.mark.parametrize(("version", "pinned"), [("v1", "v1"), *((none, "etag:abc") for none in (None, "null", ""))])
def test_an_arrival_has_normalised_fields_and_its_etag_where_there_are_no_versions(
    version: str | None, pinned: str
) -> None:
    [file] = parsed(s3_record("orders/a.json", time="2026-11-20T09:30:00.5Z", size=7, eTag='"abc"', versionId=version))
    version_id = "v1" if version == "v1" else None
    assert file == ObjectVersion("input", "orders/a.json", "abc", 7, "2026-11-20T09:30:00.500+00:00", version_id)
    assert file.version == pinned


@pytest.mark.parametrize(
    ("event", "files"),
    [
        ("ObjectCreated:Copy", 1),
        ("ObjectCreated:CompleteMultipartUpload", 1),
        ("ObjectTagging:Put", 0),
        ("ObjectRemoved:Delete", 0),
    ],
)
def test_only_events_of_a_creation_announce_a_file(event: str, files: int) -> None:
    record = s3_record("orders/a.json", event=event, size=0)
    if not files:
        # Others may lack both.
        del record["s3"]["object"]["eTag"], record["s3"]["object"]["size"]
    assert len(parsed(record)) == files
    # Nor does the event with which S3 tests the notification announce a file
    body = {"Service": "Amazon S3", "Event": "s3:TestEvent", "Time": "2026-11-20T09:30:00.000Z", "Bucket": "input"}
    assert parse_events(SQSRecord(raw_message("m1", json.dumps(body)))) == []


def body_with(name: str, value: object) -> str:
    record = s3_record("orders/a.json")
    (record if name == "eventTime" else record["s3"]["object"])[name] = value
    return json.dumps({"Records": [record]})


@pytest.mark.parametrize(
    "body",
    [
        *("no JSON", "[" * 100_000, "[]", '{"Records": [{}]}', '{"Records": [7]}'),
        *(body_with("eTag", value) for value in (None, 5, ["a"])),
        *(body_with("versionId", value) for value in ({"a": 1}, "v" * 1025)),
        *(body_with("size", value) for value in (None, float("inf"), -1, 10**40)),
        *(body_with("key", value) for value in ("orders/%FF.json", "orders/\ud800.json")),
        *(body_with("eventTime", value) for value in ("0001-01-01T00:00:00+14:00", "yesterday")),
    ],
    ids=lambda body: body[-160:],
)
def test_an_invalid_event_is_refused_with_the_id_of_its_message(body: str) -> None:
    with pytest.raises(InvalidInputError, match="message m1 is not a valid S3 event"):
        parse_events(SQSRecord(raw_message("m1", body)))


def test_the_object_of_a_canary_leaves_no_row(deployment: Deployment) -> None:
    # Given an event of a canary's object, whatever the rules take
    deployment.configure(datasets=[{"name": "rest"}])
    key = canary_key("name/object.ndjson")
    assert failures(route(batch(message("1", s3_record(key))), deployment.services)) == []
    # Then it is acknowledged, and the ledger has no arrival
    assert deployment.ledger.arrivals.versions("input", key) == []


def test_what_firehose_could_not_deliver_is_counted_and_named_in_the_log(
    deployment: Deployment, caplog: pytest.LogCaptureFixture
) -> None:
    # Given events of such an object and of another ignored file, then of that file alone
    failed = f"{FAILED_RECORDS}web/processing-failed/2026/11/23/10/a"
    both, other = [s3_record(failed), s3_record("orders/a.csv")], [s3_record("orders/b.csv")]
    for records, expected in ((both, [1]), (other, None)):
        # When
        assert failures(route(batch(message("m1", *records)), deployment.services)) == []
        # Then only the first is counted, and a stage that has none writes no such metric
        written = json.loads(json.dumps(metrics.serialize_metric_set()))
        metrics.clear_metrics()
        assert written.get("FailedRecordFiles") == expected
    assert [line.__dict__["keys"] for line in caplog.records if "could not deliver" in line.message] == [[failed]]
    (row,) = deployment.ledger.arrivals.versions("input", failed)
    assert (row.manifest, row.reason) == (None, NOT_DELIVERED)
