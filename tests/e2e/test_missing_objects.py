"""Objects missing in S3 or in the ledger are reported as missing, not as denied, and are recovered if possible."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from uuid import uuid4

import pytest

from cli.demo.run import notifications_paused
from lake.errors import TerminalError, UnknownDatasetError
from lake.layout import lake_prefix, manifest_key, part_key
from lake.ledger import ArrivalRow, CollectionId, State
from lake.manifest import Lane, ObjectVersion, Partition, new_manifest_id
from lake.time import iso_utc
from tests.e2e.permissions import logs
from tests.e2e.scenario import Scenario, event_body
from tests.e2e.stack_settings import URGENT_BY_TAG, WITH_TABLE
from tests.e2e.test_iceberg_table import tabled
from tests.e2e.waiting import wait_for

pytestmark = pytest.mark.long
"""``make permissions`` plays them."""


@contextmanager
def missing(scenario: Scenario, bucket: str, key: str) -> Iterator[None]:
    """The object is missing inside the block."""
    s3 = scenario.deployment.s3
    body = s3.get_object(Bucket=bucket, Key=key)["Body"].read()
    s3.delete_object(Bucket=bucket, Key=key)
    try:
        yield
    finally:
        s3.put_object(Bucket=bucket, Key=key, Body=body)


def announce(scenario: Scenario, file: ObjectVersion) -> None:
    """Send the event of the file to the queue of arrivals, without a version."""
    stack = scenario.deployment
    body = event_body(replace(file, version_id=None))
    stack.sqs.send_message(QueueUrl=stack.outputs.arrivals_queue, MessageBody=body)


def test_an_event_without_a_version_is_completed_by_a_listing_of_the_bucket(scenario: Scenario) -> None:
    # Given a file whose event names no version, as in a bucket without versions
    stack = scenario.deployment
    with notifications_paused(stack):
        file = scenario.put("unversioned/a.ndjson", ['{"n": 1}'])
    # When it is delivered, then the file has one arrival, with its version
    announce(scenario, file)
    scenario.wait_state(file, State.QUEUED)
    assert stack.ledger.arrivals.get(replace(file, version_id=None)) is None
    # Given an event of a deleted file that a tag could have made urgent
    gone = ObjectVersion(stack.resources.input_bucket, f"{URGENT_BY_TAG}/gone.ndjson", "0" * 32, 9, "")
    # When it is delivered, then the file waits in the batch lane
    announce(scenario, gone)
    scenario.wait_state(gone, State.QUEUED)
    arrival = stack.ledger.arrivals.get(gone)
    assert arrival is not None
    assert (arrival.lane, "the object was deleted or replaced" in arrival.reason) == (Lane.BATCH, True)


def test_a_message_that_is_not_an_event_is_redelivered(scenario: Scenario) -> None:
    # Given
    stack = scenario.deployment
    stack.sqs.send_message(QueueUrl=stack.outputs.arrivals_queue, MessageBody="no event")

    def refusals() -> int:
        return logs(scenario.cloud.logs_dir, "lambda/*route*.log").count("is not a valid S3 event")

    # Then it is redelivered after ten seconds, not after the twelve minutes of an invocation that has died
    wait_for("two refusals", lambda: refusals() > 1, seconds=120)
    # The tests after this one count dead letters.
    stack.sqs.purge_queue(QueueUrl=stack.outputs.arrivals_queue)


@pytest.mark.parametrize(
    ("function", "request_"),
    [("plan", {"execution": "unknown"}), ("promote", {}), ("reprocess", {"all": True})],
)
def test_a_dataset_without_any_file_is_unknown(scenario: Scenario, function: str, request_: dict[str, object]) -> None:
    with pytest.raises(UnknownDatasetError, match="dataset = 'nowhere' is unknown: pass one of "):
        scenario.deployment.invoke(function, {"dataset": "nowhere", **request_})


def test_a_resubmission_that_was_never_exported_is_refused(scenario: Scenario) -> None:
    name = new_manifest_id(datetime.now(UTC))
    with pytest.raises(TerminalError, match="is gone: restore the object"):
        scenario.deployment.invoke("resubmit", {"resubmission": name})


def test_a_part_and_a_manifest_without_their_documents_wait_until_these_are_restored(scenario: Scenario) -> None:
    # Given a collected file whose part has lost its document
    stack = scenario.deployment
    file = scenario.put("restored/a.ndjson", ['{"n": 1}'])
    part, control = scenario.wait_state(file, State.QUEUED), stack.resources.control_bucket

    def plan(collection: str) -> None:
        collections = stack.ledger.collections
        wait_for(f"{collection} in the index", lambda: collection in {str(row.id) for row in collections.open()})
        stack.invoke("plan", {"execution": f"restores-{uuid4().hex}", "dataset": "restored"})

    with missing(scenario, control, part_key(part.id)):
        # When a plan divides the collection, then the part is set apart
        plan(str(part.collection))
        assert "part is set apart: its document is damaged" in logs(scenario.cloud.logs_dir, "lambda/*plan*.log")
        row = scenario.manifest_of(file)
        assert row is not None
        assert row.state == State.COLLECTED
    # When it is restored, then the next plan has a manifest of it
    plan(str(CollectionId(CollectionId.parse(str(part.collection)).hour, part.id)))
    queued = scenario.manifest_of(file)
    assert queued is not None
    assert queued.state == State.QUEUED
    # When that manifest has lost its document, then a promote leaves the file in its lane, and gives the reason
    with missing(scenario, control, manifest_key(queued.id)):
        answer = stack.invoke("promote", {"files": [file.uri]})
        assert answer["notMoved"] == 1
        assert "is gone: restore the object" in answer["messages"][0]
    assert stack.invoke("promote", {"files": [file.uri]})["promoted"] == 1


def test_a_backfill_adopts_an_urgent_file_whose_route_has_crashed(scenario: Scenario) -> None:
    # Given a file with an arrival row, whose route crashed before it wrote the manifest
    stack, then = scenario.deployment, datetime.now(UTC) - timedelta(minutes=10)
    with notifications_paused(stack):
        file = scenario.put("adopted/urgent/a.ndjson", ['{"n": 1}'])
    partition = Partition.of("adopted", datetime.now(UTC))
    arrived = replace(file, arrived_at=iso_utc(then))
    crashed = ArrivalRow(arrived, new_manifest_id(then), partition, Lane.STREAM, "urgent", iso_utc(then))
    stack.ledger.arrivals.put(crashed)
    # When a backfill finds it
    hours = {"from": partition.stamp, "to": partition.stamp}
    end = scenario.execute(stack.outputs.backfill, {"dataset": "adopted", **hours})
    assert end["status"] == "SUCCEEDED", end.get("cause")
    # Then it is in the lane of its first arrival
    row = scenario.manifest_of(file)
    assert row is not None
    assert row.lane == Lane.STREAM
    scenario.start_stream()
    scenario.wait_state(file, State.DONE)


def test_a_table_waits_for_objects_and_documents_that_are_gone(scenario: Scenario) -> None:
    # Given a file in a table
    stack = scenario.deployment
    file = scenario.put(f"{WITH_TABLE}/urgent/kept.ndjson", ['{"id": "kept"}'])
    row = tabled(scenario, file, 1)
    assert row.published is not None
    bucket, prefix = stack.resources.lake_bucket, lake_prefix(row.partition, row.id, 1)
    (item,) = stack.s3.list_objects_v2(Bucket=bucket, Prefix=prefix)["Contents"]
    places = {
        "published objects are gone or changed": (bucket, item["Key"]),
        "is gone: restore the object": (stack.resources.control_bucket, row.published.document.key),
    }
    # When the table is rebuilt while an object or its document is missing, then the committer names it
    for why, place in places.items():
        with missing(scenario, *place):
            stack.change_table({"rebuild": WITH_TABLE})
            with pytest.raises(TerminalError, match=why):
                stack.change_table({})
    # When both are restored, then the table is built
    stack.change_table({"rebuild": WITH_TABLE})
    wait_for("the table to be rebuilt", lambda: not list(stack.ledger.tables.outbox(WITH_TABLE)))
    assert scenario.table_rows(WITH_TABLE)['{"id": "kept"}'] == 1
