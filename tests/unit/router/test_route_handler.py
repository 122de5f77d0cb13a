"""route: a batch of messages, from the event to the ledger and back; no event is lost, one message ends no other."""

import json
from dataclasses import replace
from datetime import timedelta
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pytest
from botocore.exceptions import ClientError

from infra.arrivals import INVISIBLE_TIMEOUTS, MAX_RECEIVES
from infra.functions import ROUTE_TIMEOUT_SECONDS
from lake.errors import InvalidInputError, TerminalError, TransientError
from lake.layout import INBOX, URGENT, manifest_of_pointer
from lake.ledger import State
from lake.manifest import Lane, ObjectVersion
from lake.manifest_documents import read_manifest
from router.requests.backfill import backfill
from router.route import handler as route_module
from router.route.events import AnnouncedVersion, VersionLookup, pause_seconds
from router.route.handler import route
from router.stream.runs import FailedStartsError
from tests.unit.lake.world import PARTITION
from tests.unit.router.conftest import Deployment
from tests.unit.router.events import batch, failures, message, raw_message, s3_record


def test_files_at_peak_go_through_the_stream_and_are_acknowledged(deployment: Deployment) -> None:
    # Given: Friday morning in Berlin
    event = batch(message("m1", s3_record("orders/a.ndjson")), message("m2", s3_record("orders/b.ndjson")))
    # When
    answer = route(event, deployment.services)
    # Then: one manifest holds both, with a pointer, and a streaming run was started
    assert failures(answer) == []
    [row] = deployment.ledger.manifests.open(Lane.STREAM, State.QUEUED)
    manifest = read_manifest(deployment.s3, "control", row, ("input",))
    assert [file.key for file in manifest.files] == ["orders/a.ndjson", "orders/b.ndjson"]
    assert (row.partition, row.bytes, row.files) == (PARTITION, 200, 2)
    [pointer] = deployment.keys("control", "inbox/")
    body = deployment.raw_s3.get_object(Bucket="control", Key=pointer)["Body"].read()
    assert json.loads(body) == {"manifest": row.id}
    assert deployment.glue.runs == {"stream-job": {"jr_1": "RUNNING"}}
    arrival = deployment.ledger.arrivals.get(manifest.files[0])
    assert arrival is not None
    assert (arrival.manifest, arrival.reason) == (row.id, "peak hours 08:00-20:00 Europe/Berlin")


def test_urgent_files_have_a_manifest_and_a_pointer_of_their_own(deployment: Deployment) -> None:
    # Given: Friday morning in Berlin, a peak file and an urgent one of the same dataset and hour
    event = batch(message("m1", s3_record("orders/a.ndjson"), s3_record("orders/urgent/b.ndjson")))
    # When
    route(event, deployment.services)
    # Then: row, document and pointer say which is urgent
    rows = {row.urgent: row for row in deployment.ledger.manifests.open(Lane.STREAM, State.QUEUED)}
    manifests = {urgent: read_manifest(deployment.s3, "control", row, ("input",)) for urgent, row in rows.items()}
    assert {urgent: [file.key for file in found.files] for urgent, found in manifests.items()} == {
        False: ["orders/a.ndjson"],
        True: ["orders/urgent/b.ndjson"],
    }
    assert manifests[True].urgent
    [pointer] = deployment.keys("control", f"{INBOX}{URGENT}")
    assert manifest_of_pointer(pointer) == rows[True].id
    assert len(deployment.keys("control", "inbox/")) == 2


def test_files_outside_of_peak_wait_and_start_nothing(deployment: Deployment) -> None:
    deployment.wait(timedelta(hours=12))
    answer = route(batch(message("m1", s3_record("orders/a.ndjson"))), deployment.services)
    assert failures(answer) == []
    assert [row.lane for row in deployment.waiting()] == ["batch"]
    assert deployment.keys("control", "inbox/") == []
    assert deployment.glue.runs == {}


def test_the_partition_is_the_hour_of_the_event_not_of_the_routing(deployment: Deployment) -> None:
    route(batch(message("m1", s3_record("orders/a.ndjson", time="2025-12-31T23:59:59.999Z"))), deployment.services)
    [row] = deployment.ledger.manifests.open(Lane.STREAM, State.QUEUED)
    assert str(row.partition) == "orders#2025-12-31T23"


def test_a_duplicate_changes_nothing(deployment: Deployment) -> None:
    # Given: an event, twice in one batch
    event = batch(message("m1", s3_record("orders/a.ndjson")), message("m2", s3_record("orders/a.ndjson")))
    route(event, deployment.services)
    deployment.ledger.stream.begin_run("jr_1", deployment.now - timedelta(hours=1))
    deployment.faults.writes.clear()
    # When: both are redelivered
    answer = route(event, deployment.services)
    # Then
    assert failures(answer) == []
    [row] = deployment.ledger.manifests.open(Lane.STREAM, State.QUEUED)
    assert row.files == 1
    # What was admitted to the stream lane is counted before its owner is known, until the next watch.
    assert deployment.faults.writes == ["update_item", "put_object", "put_item", "delete_object", "start_job_run"]
    assert len(deployment.keys("control", "inbox/")) == 1
    assert deployment.keys("control", "intents/") == []


def test_a_foreign_bucket_is_ignored(deployment: Deployment) -> None:
    route(batch(message("m1", s3_record("orders/a.ndjson", bucket="other"))), deployment.services)
    [row] = deployment.ledger.arrivals.versions("other", "orders/a.ndjson")
    assert row.reason == "the bucket other is not the input of this deployment: copy its data to input"


def test_an_event_is_redelivered_when_the_stream_cannot_be_started(deployment: Deployment) -> None:
    # Given: a duplicate whose writes (backlog, intent, row, end of the intent) are fine, but StartJobRun has no answer
    event = batch(message("m1", s3_record("orders/a.ndjson")))
    route(event, deployment.services)
    deployment.glue.runs.clear()
    deployment.ledger.stream.forget_starts()
    deployment.faults.writes.clear()
    deployment.faults.drop = 5
    # When, Then: also a duplicate makes sure that the stream runs
    assert failures(route(event, deployment.services)) == ["m1"]
    assert failures(route(event, deployment.services)) == []
    assert deployment.glue.runs == {"stream-job": {"jr_2": "RUNNING"}}


@pytest.mark.parametrize(
    ("error", "tries"), [(TransientError("no room"), 2), (FailedStartsError("job", 3, "FAILED", None), 0)]
)
def test_an_event_of_an_owned_file_does_not_end_among_the_dead_letters(
    deployment: Deployment, monkeypatch: pytest.MonkeyPatch, error: Exception, tries: int
) -> None:
    # Given a stream that cannot be started
    monkeypatch.setattr(route_module, "ensure_running", Mock(side_effect=error))
    event = s3_record("orders/a.ndjson")
    # When its event is delivered again and again, Then the sweep starts the stream in the end
    answers = [
        failures(route(batch(raw_message("m1", json.dumps({"Records": [event]}), count)), deployment.services))
        for count in range(1, 5)
    ]
    assert answers == [["m1"]] * tries + [[]] * (4 - tries)


def test_what_was_not_acknowledged_is_delivered_again_soon_and_then_less_often(deployment: Deployment) -> None:
    # Given messages that cannot be routed, delivered for the first time and later, and one that can
    sqs: Any = Mock()
    sqs.change_message_visibility_batch.return_value = {}
    deployment.services = replace(deployment.services, sqs=sqs, arrivals_queue="url")
    bad = [raw_message(f"bad-{count}", "no JSON", count) for count in range(1, 13)]
    # When
    answer = route(batch(message("good", s3_record("orders/a.ndjson")), *bad), deployment.services)
    # Then each comes back after its pause, and they are asked for in requests of ten
    assert failures(answer) == [f"bad-{count}" for count in range(1, 13)]
    calls = sqs.change_message_visibility_batch.call_args_list
    assert sorted(len(call.kwargs["Entries"]) for call in calls) == [2, 10]
    pauses = {item["ReceiptHandle"]: item["VisibilityTimeout"] for call in calls for item in call.kwargs["Entries"]}
    assert [pauses[f"receipt-of-bad-{count}"] for count in range(1, 13)] == [10, 60, *[300] * 10]
    # When the queue refuses it, Then they come back by its own timeout
    sqs.change_message_visibility_batch.side_effect = ClientError({"Error": {"Code": "AccessDenied"}}, "Change")
    assert len(failures(route(batch(*bad), deployment.services))) == 12


def test_an_outage_of_an_hour_fills_no_dead_letters() -> None:
    # Given the pauses after failures, and those after invocations that have died
    pauses = [pause_seconds(count) for count in range(1, MAX_RECEIVES)]
    died = [INVISIBLE_TIMEOUTS * ROUTE_TIMEOUT_SECONDS] * (MAX_RECEIVES - 1)
    # Then the last delivery is after the outage, and an invocation that works has its time
    assert min(sum(pauses), sum(died)) >= 3600
    assert INVISIBLE_TIMEOUTS > 1


@pytest.mark.parametrize("state", ["fresh", "stale", "stopping"])
def test_only_a_fresh_heartbeat_of_a_run_that_goes_on_spares_the_start(deployment: Deployment, state: str) -> None:
    deployment.ledger.stream.record_heartbeat("jr_9", deployment.now - timedelta(minutes=5 * (state == "stale")))
    deployment.ledger.stream.request_stop(state == "stopping")
    route(batch(message("m1", s3_record("orders/a.ndjson"))), deployment.services)
    assert deployment.glue.runs == ({} if state == "fresh" else {"stream-job": {"jr_1": "RUNNING"}})


def test_the_lambda_handler_prints_its_metrics(
    deployment: Deployment,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    # Given: the handler as Lambda calls it
    monkeypatch.setattr(route_module, "container_services", lambda: deployment.services)
    context = SimpleNamespace(
        function_name="route", memory_limit_in_mb=256, invoked_function_arn="arn", aws_request_id="r1"
    )
    event = {"Records": [message("m1", s3_record("orders/a.ndjson"), s3_record("orders/a.csv"))]}
    # When
    answer = route_module.handler(event, context)  # type: ignore[arg-type]
    # Then
    assert answer == {"batchItemFailures": []}
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    [metrics] = [line for line in lines if "_aws" in line]
    assert (metrics["StreamBytes"], metrics["BatchBytes"]) == ([100.0], [0.0])
    # And its log has every other count.
    [counts] = [vars(record) for record in caplog.records if record.message == "routed"]
    assert (counts["arrivals"], counts["not_acknowledged"]) == (2, 0)
    assert (counts["outcomes"], counts["manifests"], counts["parts"]) == ({"owned": 1, "ignored": 1}, 1, 0)


def lone_surrogate(identity: str) -> dict[str, Any]:
    """A message whose key is valid JSON, and cannot be encoded."""
    record = s3_record("orders/x.ndjson")
    record["s3"]["object"]["key"] = "orders/\ud800.ndjson"
    return raw_message(identity, json.dumps({"Records": [record]}))


def test_a_message_that_cannot_be_routed_fails_alone(deployment: Deployment) -> None:
    # Given: one message among others whose key cannot be hashed
    good = [message(f"m{number}", s3_record(f"orders/{number}.ndjson")) for number in range(6)]
    event = batch(*good[:3], lone_surrogate("bad"), *good[3:])
    # When, Then
    assert failures(route(event, deployment.services)) == ["bad"]
    rows = deployment.ledger.manifests.open(Lane.STREAM, State.QUEUED)
    assert sum(row.files for row in rows) == len(good)


@pytest.mark.parametrize("error", [TransientError("later"), TerminalError("broken")])
def test_an_error_of_all_messages_returns_them_all(
    deployment: Deployment, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    calls = Mock(side_effect=error)
    monkeypatch.setattr(route_module, "route_arrivals", calls)
    event = batch(*(message(f"m{number}", s3_record(f"orders/{number}.ndjson")) for number in range(4)))
    assert failures(route(event, deployment.services)) == ["m0", "m1", "m2", "m3"]
    # A fault that passes concerns all of them: no part is tried by itself.
    assert calls.call_count == (1 if isinstance(error, TransientError) else 7)


KEY = "clicks/a.json"


def put(deployment: Deployment, body: bytes = b"{}\n") -> dict[str, Any]:
    answer: dict[str, Any] = deployment.raw_s3.put_object(Bucket="input", Key=KEY, Body=body)
    return {"eTag": answer["ETag"].strip('"'), "versionId": answer.get("VersionId"), "size": len(body)}


def keep_versions(deployment: Deployment, status: str = "Enabled") -> None:
    deployment.raw_s3.put_bucket_versioning(Bucket="input", VersioningConfiguration={"Status": status})


def send(deployment: Deployment, facts: dict[str, Any], *missing: str) -> list[str]:
    record = s3_record(KEY, **facts)
    for name in missing:
        record["s3"]["object"].pop(name, None)
    deployment.configure(peak={"hours": []})
    return failures(route(batch(message("m1", record)), deployment.services))


def owned_files(deployment: Deployment) -> list[ObjectVersion]:
    rows = deployment.waiting()
    manifests = [read_manifest(deployment.raw_s3, "control", row, ("input",)) for row in rows]
    return [file for manifest in manifests for file in manifest.files]


@pytest.mark.parametrize(
    ("missing", "has_versions"),
    [
        (("size",), False),
        (("size",), True),
        (("eTag",), True),
        (("versionId",), True),
        (("size", "versionId"), True),
        (("size", "eTag"), True),
    ],
)
def test_what_is_missing_is_looked_up(deployment: Deployment, missing: tuple[str, ...], has_versions: bool) -> None:
    if has_versions:
        keep_versions(deployment)
    facts = put(deployment)
    deployment.raw_s3.put_object(Bucket="input", Key=KEY + "l", Body=b"other")
    assert send(deployment, facts, *missing) == []
    [file] = owned_files(deployment)
    assert (file.key, file.etag, file.size, file.version_id) == (KEY, facts["eTag"], 3, facts["versionId"])


def test_a_listing_knows_the_version_that_an_event_did_not_name(deployment: Deployment) -> None:
    keep_versions(deployment)
    facts = put(deployment)
    send(deployment, facts, "versionId")
    event = {"action": "find", "request": {"dataset": "clicks", "from": "2000-01-01", "to": "2100-01-01"}}
    result = backfill(event, deployment.services)
    assert (result["found"], result["known"]) == (1, 1)


@pytest.mark.parametrize("missing", [("size", "eTag", "versionId"), ("eTag", "versionId")])
def test_an_event_that_pins_nothing_is_refused(deployment: Deployment, missing: tuple[str, ...]) -> None:
    assert send(deployment, put(deployment), *missing) == ["m1"]
    assert owned_files(deployment) == []


def test_an_event_without_a_size_whose_object_is_gone_is_refused(deployment: Deployment) -> None:
    facts = put(deployment)
    deployment.raw_s3.delete_object(Bucket="input", Key=KEY)
    assert send(deployment, facts, "size") == ["m1"]
    assert owned_files(deployment) == []
    # And the reason says what to do
    announced = AnnouncedVersion("input", KEY, facts["eTag"], None, deployment.now, None)
    with pytest.raises(InvalidInputError, match="the sweep finds the file if it is there; put it again"):
        VersionLookup(deployment.services).complete(announced)


@pytest.mark.parametrize(
    ("operation", "missing"), [("get_bucket_versioning", "versionId"), ("list_object_versions", "size")]
)
def test_the_events_of_an_invocation_wait_once_for_an_s3_that_does_not_answer(
    deployment: Deployment, monkeypatch: pytest.MonkeyPatch, operation: str, missing: str
) -> None:
    # Given an S3 that is busy, three events that lack what it would be asked for, and one that lacks nothing
    deployment.configure(peak={"hours": []})
    records = [s3_record(f"clicks/{number}.json") for number in range(4)]
    for record in records[:3]:
        del record["s3"]["object"][missing]
    busy = Mock(side_effect=ClientError({"Error": {"Code": "SlowDown", "Message": ""}}, operation))
    monkeypatch.setattr(deployment.raw_s3, operation, busy)
    event = batch(*(message(f"m{number}", record) for number, record in enumerate(records)))
    # When, Then the last one is routed, and S3 was asked once
    assert failures(route(event, deployment.services)) == ["m0", "m1", "m2"]
    assert busy.call_count == 1
    assert [file.key for file in owned_files(deployment)] == ["clicks/3.json"]


def test_an_event_of_the_time_before_versions_names_the_null_version(deployment: Deployment) -> None:
    # Given an object that was put before versions were switched on, and was overwritten after that
    facts = put(deployment)
    keep_versions(deployment)
    newer = put(deployment, b"newer\n")
    # When both events come
    assert send(deployment, {**facts, "versionId": None}) == []
    deployment.wait(timedelta(seconds=1))
    assert send(deployment, newer) == []
    # Then each version is an arrival
    assert {file.version_id for file in owned_files(deployment)} == {None, newer["versionId"]}


def test_a_complete_event_costs_no_request_for_its_version(
    deployment: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    keep_versions(deployment)
    facts = put(deployment)
    monkeypatch.delattr(deployment.raw_s3.__class__, "get_bucket_versioning", raising=False)
    monkeypatch.delattr(deployment.raw_s3.__class__, "list_object_versions", raising=False)
    assert send(deployment, facts) == []
    assert [file.version_id for file in owned_files(deployment)] == [facts["versionId"]]
