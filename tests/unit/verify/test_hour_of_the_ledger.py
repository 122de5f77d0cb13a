"""An hour is more than its files in the input bucket: unpublished content is never proven."""

import threading
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from lake.commit import CommitDocument, read_commit
from lake.layout import complete_marker_key, partition_prefix
from lake.ledger import ArrivalRow, ManifestRow
from lake.ledger.arrivals import Arrivals
from lake.manifest import Lane, ObjectVersion
from lake.publish import roll_forward
from lake.time import iso_utc
from router.sweep.handler import sweep
from tests.modified_at import ModifiedAt
from tests.unit.lake.world import MORNING, PARTITION
from tests.unit.router.conftest import Deployment
from tests.unit.router.settling import done
from tests.unit.router.sweep.sweeping import listed, published, upload, with_events
from verify import hours as module
from verify.hours import Effort, HoursCheck
from verify.manifest_check import check_manifest
from verify.report import HourOutcome, HourReport
from verify.stack import Hours, Stack

HOUR = PARTITION.stamp
PARTITION_FOLDER = partition_prefix(PARTITION).rstrip("/")


def verified(deployment: Deployment, share: float = 1.0, stop_at: datetime | None = None) -> HourReport:
    services, s3 = deployment.services, ModifiedAt(deployment.raw_s3, MORNING)
    arguments: Any = (s3, services.ledger, services.resources, services.settings, PARTITION.dataset, deployment.clock)
    hours, effort = Hours(PARTITION.dataset, HOUR, HOUR), Effort(share, stop_at=stop_at)
    (report,) = HoursCheck(Stack.of(*arguments), hours, effort, lambda _: None).run()
    return report


def put(deployment: Deployment, key: str) -> ObjectVersion:
    """A file of the hour in the input bucket that the ledger does not know."""
    etag = deployment.raw_s3.put_object(Bucket="input", Key=key, Body=b"{}\n")["ETag"]
    return ObjectVersion.of("input", key, etag, 3, MORNING, None)


@pytest.mark.parametrize("state", ["QUEUED", "RUNNING", "FAILED"])
def test_a_manifest_whose_input_is_gone_and_that_published_nothing_is_not_proven(
    deployment: Deployment, state: str
) -> None:
    # Given a manifest of the hour; the input bucket is empty
    row = listed(deployment, "a.json")
    if state == "RUNNING":
        deployment.claimed(row)
    if state == "FAILED":
        assert deployment.ledger.manifests.fail(row, "its lines are lost", deployment.now)
    # When
    report = verified(deployment)
    # Then a scheduled verification keeps the hour as well
    assert (report.outcome, report.is_empty) == (HourOutcome.UNPROVEN, False)
    assert f"manifest {row.id} is {state} and has published nothing" in report.unproven[0]


def test_a_manifest_that_superseded_a_listed_one_is_checked(deployment: Deployment) -> None:
    # Given a manifest that the ledger itself does not list
    source, target = listed(deployment, "a.json"), deployment.manifest("a.json")
    deployment.superseded(source, target)
    # When
    report = verified(deployment)
    # Then
    assert report.manifests == 1
    assert [target.id in reason for reason in report.unproven] == [True]


def test_a_listed_manifest_without_a_row_is_not_proven(deployment: Deployment) -> None:
    deployment.ledger.partitions.list_manifest(PARTITION, "20261120T090000aa", deployment.now)
    report = verified(deployment)
    assert "20261120T090000aa is not recorded yet" in report.unproven[0]


def committed_again(deployment: Deployment) -> tuple[ManifestRow, CommitDocument]:
    """PUBLISHING in a second generation that keeps the first generation's lake objects, but not its quarantine objects.

    The document belongs to the first generation.
    """
    row = published(deployment, listed(deployment, "a.json"))
    assert row.published is not None
    first = read_commit(deployment.raw_s3, "control", row.published.document)
    deployment.ledger.manifests.force(row, deployment.now, "request")
    lists = {"objects": first.objects, "sources": first.sources, "new_columns": first.new_columns}
    return deployment.committed(deployment.claimed(deployment.row(row.id)), **lists), first


def test_an_object_of_an_earlier_generation_is_replaced_unless_the_published_one_keeps_it(
    deployment: Deployment,
) -> None:
    publishing, first = committed_again(deployment)
    roll_forward(deployment.s3, deployment.ledger, "control", publishing, deployment.clock, ("lake", "quarantine"))
    # And a person's copy of it, which no sweep deletes
    copy = first.objects[0].key.replace(".parquet", "-copy.parquet")
    deployment.raw_s3.put_object(Bucket="lake", Key=copy, Body=b"")
    # When
    report = verified(deployment)
    # Then
    assert f"s3://lake/{copy}" in [difference.uri for difference in report.differences]
    (replaced,) = [reason for reason in report.unproven if "was replaced by generation 2" in reason]
    assert replaced.startswith(f"s3://quarantine/{first.quarantine[0].key} ")
    # And if the share leaves out its manifest, kept objects are not reported as replaced
    report = verified(deployment, share=0)
    assert ([item.uri for item in report.differences], report.unproven) == ([f"s3://lake/{copy}"], [])


def test_an_object_of_a_generation_that_is_being_published_is_not_proven(deployment: Deployment) -> None:
    # Given a manifest with two visible generations: the second one is not DONE yet
    _, first = committed_again(deployment)
    key = first.objects[0].key.replace("-g1-", "-g2-")
    deployment.raw_s3.put_object(Bucket="lake", Key=key, Body=b"")
    # When
    report = verified(deployment)
    # Then
    assert f"s3://lake/{key} is of generation 2, which is being published: verify this hour again" in report.unproven


@pytest.mark.parametrize(
    ("bucket", "folder"), [("lake", "orders/date=2026-11-20/hour=23"), ("quarantine", PARTITION_FOLDER)]
)
def test_an_object_outside_of_the_folder_of_its_hour_is_found(deployment: Deployment, bucket: str, folder: str) -> None:
    # Given a manifest that has published an object outside the folder that readers of its hour see
    row = listed(deployment, "a.json")
    item = upload(deployment, bucket, f"{folder}/{row.id}-g1-0.parquet")
    deployment.published(row, objects=(item,))
    # When
    report = verified(deployment)
    # Then
    problems = [difference.problem for difference in report.differences if difference.uri.endswith(item.key)]
    assert "is not in the folder of its hour: readers do not see it" in problems


def test_a_manifest_that_is_converted_again_while_it_is_compared_is_not_proven(
    deployment: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Given a published manifest, whose objects are replaced and deleted before they are read
    row = published(deployment, listed(deployment, "a.json"))
    replaced = deployment.raw_s3.list_objects_v2(Bucket="lake")["Contents"]

    def check(*given: Any, **options: Any) -> Any:
        deployment.ledger.manifests.force(row, deployment.now, "request")
        published(deployment, deployment.row(row.id))
        for item in replaced:
            deployment.raw_s3.delete_object(Bucket="lake", Key=item["Key"])
        return check_manifest(*given, **options)

    monkeypatch.setattr(module, "check_manifest", check)
    # When
    report = verified(deployment)
    # Then
    assert (report.outcome, report.differences) == (HourOutcome.UNPROVEN, [])
    assert f"manifest {row.id} has changed meanwhile: verify this hour again" in report.unproven
    assert report.missed == 0


def test_a_marker_that_is_too_early_or_not_true_is_found(deployment: Deployment) -> None:
    # Given an hour that a sweep has announced
    with_events(deployment)
    published(deployment, listed(deployment, "a.json"))
    deployment.wait(timedelta(hours=1))
    sweep(deployment.services)
    key = complete_marker_key(PARTITION)

    def found() -> tuple[list[str], list[str]]:
        report = verified(deployment)
        marked = [text for text in report.unproven if key in text]
        return marked, [item.problem for item in report.differences if item.uri.endswith(key)]

    assert found() == ([], [])
    # When its marker is deleted
    marker = deployment.raw_s3.get_object(Bucket="lake", Key=key)["Body"].read()
    deployment.raw_s3.delete_object(Bucket="lake", Key=key)
    assert found() == ([f"s3://lake/{key} is missing, and the hour was announced as complete"], [])
    # And when the marker is archived, so that it cannot be read, or is damaged
    for body, storage, error in ((marker, "GLACIER", "InvalidObjectState"), (b"{", "STANDARD", "InvalidDocumentError")):
        deployment.raw_s3.put_object(Bucket="lake", Key=key, Body=body, StorageClass=storage)
        ((reason,), differences) = found()
        assert error in reason
        assert differences == []
    # And when a count of the marker, or of the hour's row, differs
    name = {"pk": f"partition#{PARTITION.dataset}", "sk": PARTITION.stamp}
    change: dict[str, Any] = {"UpdateExpression": "ADD #counts.#rows :one"}
    change |= {"ExpressionAttributeNames": {"#counts": "counts", "#rows": "rows"}}
    for body, rows in ((marker.replace(b'"files":1', b'"files":2'), 0), (marker, 1)):
        deployment.raw_s3.put_object(Bucket="lake", Key=key, Body=body)
        values = {":one": rows}
        deployment.dynamodb.update_item(TableName="ledger", Key=name, ExpressionAttributeValues=values, **change)
        ((reason,), differences) = found()
        assert "'files': 1" in reason
        assert differences == []
    # And when the marker is there, and a manifest is queued that has not touched the hour
    deployment.raw_s3.put_object(Bucket="lake", Key=key, Body=marker)
    late = deployment.queued("late.json")
    name = {"pk": f"manifest-of-hour#{PARTITION}", "sk": late.id}
    deployment.dynamodb.put_item(TableName=deployment.resources.ledger_table, Item=name)
    assert found() == ([], [f"says that the hour is complete, and manifest {late.id} is QUEUED"])
    # And when the marker stays after the hour was reopened
    deployment.ledger.partitions.touch(PARTITION, deployment.now)
    assert found() == ([], [])
    sweep(deployment.services)
    assert found() == ([], [])
    deployment.raw_s3.put_object(Bucket="lake", Key=key, Body=marker)
    assert found() == ([f"s3://lake/{key} is there, and the hour was announced as reopened"], [])


def ignored(deployment: Deployment, key: str) -> ObjectVersion:
    """A file that no rule selected when it arrived."""
    file = put(deployment, key)
    deployment.ledger.arrivals.put(ArrivalRow(file, None, None, None, "no rule of [[datasets]] matches the key", ""))
    return file


def test_an_ignored_file_that_a_rule_selects_today_is_unproven_with_the_command(deployment: Deployment) -> None:
    # Given a file that no rule selects, which is left out, and a file that a rule selects
    ignored(deployment, "orders/a.txt")
    assert verified(deployment).is_empty
    file = ignored(deployment, "orders/a.json")
    report = verified(deployment)
    assert (report.outcome, report.is_empty) == (HourOutcome.UNPROVEN, False)
    (reason,) = report.unproven
    assert file.uri in reason
    assert f"'hybrid-router backfill --dataset orders --from {HOUR} --to {HOUR}'" in reason


@pytest.mark.parametrize(
    ("minutes", "in_parts", "outcome"),
    [
        (29, False, HourOutcome.UNPROVEN),
        (31, False, HourOutcome.DIFFERS),
        # The listing has the time at which the upload began.
        (31, True, HourOutcome.UNPROVEN),
        (25 * 60, True, HourOutcome.DIFFERS),
    ],
)
def test_a_file_that_may_be_on_its_way_is_not_proven(
    deployment: Deployment, minutes: int, in_parts: bool, outcome: HourOutcome
) -> None:
    name: dict[str, Any] = {"Bucket": "input", "Key": "orders/a.json"}
    if in_parts:
        name["UploadId"] = deployment.raw_s3.create_multipart_upload(**name)["UploadId"]
        part = {"ETag": deployment.raw_s3.upload_part(**name, PartNumber=1, Body=b"{}")["ETag"], "PartNumber": 1}
        deployment.raw_s3.complete_multipart_upload(**name, MultipartUpload={"Parts": [part]})
    else:
        put(deployment, "orders/a.json")
    deployment.now = MORNING + timedelta(minutes=minutes)
    report = verified(deployment)
    assert report.outcome == outcome
    assert "but not in the ledger" in "".join([*map(str, report.differences), *report.unproven])


@pytest.mark.parametrize(
    ("minutes", "owner", "outcome"),
    [
        (29, "a", HourOutcome.UNPROVEN),
        (31, "a", HourOutcome.DIFFERS),
        # It was listed before it was recorded, or had an owner that was presumed dead by then.
        (31, None, HourOutcome.UNPROVEN),
        (31, "b", HourOutcome.UNPROVEN),
    ],
)
def test_an_old_file_that_is_being_recorded_is_not_proven(
    deployment: Deployment, monkeypatch: pytest.MonkeyPatch, minutes: int, owner: str | None, outcome: HourOutcome
) -> None:
    # Given a file that a backfill has found a day later, and whose owner has no row yet
    deployment.wait(timedelta(days=1))
    file = put(deployment, "orders/a.json")
    found = ArrivalRow(file, "a", PARTITION, Lane.BATCH, "", iso_utc(deployment.now))
    assert deployment.ledger.arrivals.put(found) == found
    listed = None if owner is None else replace(found, manifest=owner)
    reads, read = iter([[listed]]), Arrivals.get_many
    monkeypatch.setattr(Arrivals, "get_many", lambda self, files: next(reads, None) or read(self, files))
    # When
    deployment.wait(timedelta(minutes=minutes))
    report = verified(deployment)
    # Then
    assert report.outcome == outcome


@pytest.mark.parametrize("is_abandoned", [False, True])
def test_a_file_whose_owner_never_became_a_manifest_is_found(deployment: Deployment, is_abandoned: bool) -> None:
    # Given an arrival row that no function has completed
    file = put(deployment, "orders/orphan.json")
    deployment.ledger.arrivals.put(ArrivalRow(file, "nobody", PARTITION, Lane.BATCH, "", iso_utc(deployment.now)))
    if is_abandoned:
        deployment.ledger.manifests.abandon("nobody", deployment.now)
    # When
    deployment.wait(timedelta(minutes=20))
    early = verified(deployment)
    deployment.wait(timedelta(minutes=20))
    report = verified(deployment)
    # Then
    assert (early.outcome, report.outcome) == (HourOutcome.UNPROVEN, HourOutcome.DIFFERS)
    (difference,) = report.differences
    assert (difference.uri, report.unproven) == (file.uri, [])
    assert "nobody" in difference.problem


@pytest.mark.parametrize("error", [MemoryError(), RuntimeError("the container died"), OSError("unreadable")])
def test_a_manifest_that_cannot_be_compared_is_unproven_and_the_others_are_compared(
    deployment: Deployment, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    # Given three published manifests, and a failing comparison of the second one
    rows = [listed(deployment, name) for name in ("a.json", "b.json", "c.json")]
    for row in rows:
        done(deployment, row, 10)
    compared = []

    def check(stack: Any, row: Any, *rest: Any, **options: Any) -> Any:
        # Ctrl-C interrupts only this thread.
        assert threading.current_thread() is threading.main_thread()
        if row.id == rows[1].id:
            raise error
        compared.append(row.id)
        return check_manifest(stack, row, *rest, **options)

    monkeypatch.setattr(module, "check_manifest", check)
    # When
    report = verified(deployment)
    # Then
    assert (len(compared), report.compared, report.missed) == (2, 2, 1)
    (reason,) = [reason for reason in report.unproven if rows[1].id in reason]
    assert type(error).__name__ in reason
    # And its objects are not reported as foreign
    assert not any(rows[1].id in difference.uri for difference in report.differences)


def test_a_manifest_is_not_compared_without_enough_time(
    deployment: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Given a run that is out of time as soon as the input is listed
    row = listed(deployment, "a.json")
    done(deployment, row, 10)
    monkeypatch.setattr(module, "find_files", lambda *_, **__: {})
    # When, Then
    report = verified(deployment, stop_at=deployment.now)
    assert (report.outcome, report.compared, report.missed) == (HourOutcome.UNPROVEN, 0, 1)
    assert f"manifest {row.id} was not compared, because the run had no time left" in report.unproven[0]
