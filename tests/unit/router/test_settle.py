"""settle: the verdict on an execution, by the ledger and the objects of lake and quarantine."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any
from unittest.mock import Mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lake.errors import InvalidInputError, TransientError
from lake.layout import result_key
from lake.ledger import ManifestRow
from lake.ledger.manifest_row import digest_objects
from lake.manifest import Lane
from router.executions.run_status import current_row_pages, run_status
from router.settle import handler, published
from router.settle.published import list_digests
from tests.model.fake_s3 import FakeS3, after_empty_pages
from tests.unit.lake.world import MORNING
from tests.unit.router.conftest import Deployment
from tests.unit.router.planning import document
from tests.unit.router.settling import RUN, done, planned, settled

VERDICT = "s3://control/plans/overnight/verdict.json"


def test_an_execution_is_settled(deployment: Deployment) -> None:
    # Given: two done manifests, one of them after it was split in two
    first, second = planned(deployment, "a.json", "b.json")
    done(deployment, first, 20, 1)
    halves = [deployment.manifest("b1.json"), deployment.manifest("b2.json")]
    deployment.superseded(second, *halves)
    done(deployment, deployment.row(halves[0].id), 5)
    # When: the other one is still in progress
    deployment.claimed(deployment.row(halves[1].id))
    # Then
    assert (settled(deployment)["verdict"], settled(deployment)["open"]) == ("OPEN", 1)
    # When: it fails
    deployment.ledger.manifests.fail(deployment.row(halves[1].id), "out of memory", deployment.now)
    # Then
    result = settled(deployment)
    text = result.pop("notification")
    assert text.startswith("Execution overnight of overnight, stage test: FAILED\n1 manifest failed (first: ")
    assert result == {
        "verdict": "FAILED",
        "done": 2,
        "failed": 1,
        "open": 0,
        "rows": 25,
        "rejects": 1,
        "failedFiles": 0,
        "damagedObjects": 0,
        "datasetsAboveShare": 0,
        "notify": True,
        "message": f"1 manifest failed (first: {halves[1].id}, out of memory); "
        "1 line could not become a row and is in the quarantine",
        "verdictUri": VERDICT,
    }
    assert [item["manifest"] for item in document(deployment, VERDICT)["notDone"]] == [halves[1].id]
    assert {"deadline", "outcome", "late_minutes"} <= set(deployment.ledger.executions.facts("overnight"))


def test_a_settle_that_began_before_another_one_does_not_overwrite_its_verdict(deployment: Deployment) -> None:
    # Given a settle that stalls after it has read the rows; meanwhile they end, and another settle judges them
    (row,) = planned(deployment, "a.json")

    def read_and_wait(*arguments: Any) -> Any:
        deployment.patch.undo()
        yield from list(current_row_pages(*arguments))
        deployment.wait(timedelta(minutes=3))
        done(deployment, row, 20)
        assert settled(deployment)["verdict"] == "SUCCEEDED"

    deployment.patch.setattr(handler, "current_row_pages", read_and_wait)
    # When, Then
    with pytest.raises(TransientError, match="a later settle"):
        settled(deployment)
    assert document(deployment, VERDICT)["verdict"] == "SUCCEEDED"
    assert deployment.ledger.executions.facts("overnight")["outcome"] == "SUCCEEDED"


def test_an_execution_without_remaining_manifests_gives_the_reason(deployment: Deployment) -> None:
    # Given
    promoted, reprocessed = planned(deployment, "a.json", "b.json")
    done(deployment, reprocessed, 3)
    # When: a person promotes and reprocesses all of its manifests
    deployment.wait(timedelta(minutes=1))
    urgent = deployment.manifest("a.json", lane=Lane.STREAM)
    deployment.superseded(promoted, urgent)
    deployment.ledger.manifests.force(deployment.row(reprocessed.id), deployment.now, "request")
    # Then
    message = "its 2 manifests were promoted or queued again meanwhile"
    assert (settled(deployment)["verdict"], settled(deployment)["message"]) == ("EMPTY", message)


def test_an_execution_that_was_never_planned_has_no_verdict(deployment: Deployment) -> None:
    with pytest.raises(InvalidInputError, match="or plan another execution"):
        settled(deployment)


@pytest.mark.parametrize("is_running", [False, True])
def test_what_was_queued_again_since_the_plan_is_for_the_next_one(deployment: Deployment, is_running: bool) -> None:
    # Given: four manifests, one of which was reprocessed before the plan
    before = deployment.queued("c.json")
    deployment.ledger.manifests.fail(before, "it is broken", deployment.now)
    assert deployment.ledger.manifests.force(deployment.row(before.id), deployment.now, "request")
    deployment.wait(timedelta(minutes=1))
    first, second, third = planned(deployment, "a.json", "b.json", "d.json")
    done(deployment, first, 5)
    assert deployment.ledger.manifests.fail(deployment.row(third.id), "it is broken", deployment.now)
    # When: a person reprocesses other ended ones, perhaps with an execution of their own, which splits one
    deployment.wait(timedelta(minutes=1))
    assert deployment.ledger.manifests.force(deployment.row(first.id), deployment.now, "request")
    assert deployment.ledger.manifests.force(deployment.row(third.id), deployment.now, "request")
    if is_running:
        deployment.claimed(deployment.row(first.id))
        halves = [deployment.manifest(name) for name in ("d1.json", "d2.json")]
        deployment.superseded(deployment.row(third.id), *halves)
    done(deployment, second, 3)
    # Then: the verdict is about the others
    assert (settled(deployment)["verdict"], settled(deployment)["open"]) == ("FAILED", 1)
    done(deployment, deployment.row(before.id), 2)
    assert (settled(deployment)["verdict"], settled(deployment)["done"]) == ("SUCCEEDED", 2)
    # But a failed one counts: no later verdict would report it, and a later round of the same run can claim it
    assert deployment.ledger.manifests.fail(deployment.row(first.id), "it is broken", deployment.now)
    assert (settled(deployment)["verdict"], settled(deployment)["failed"]) == ("FAILED", 1)


@pytest.mark.parametrize("run", [None, 7, "plans/overnight/runs/00000.json", "s3://elsewhere/run.json"])
def test_run_status_reads_run_documents_only(deployment: Deployment, run: object) -> None:
    with pytest.raises(InvalidInputError, match="is not a valid run document"):
        run_status({"run": run}, deployment.services)


@pytest.mark.parametrize("is_there", [True, False])
def test_a_row_that_cannot_be_used_keeps_no_other_manifest_from_being_judged(
    deployment: Deployment, is_there: bool
) -> None:
    # Given: a done manifest, and one whose row was changed or deleted by hand
    bad, good = planned(deployment, "a.json", "b.json")
    done(deployment, good, 20)
    if is_there:
        deployment.damage(bad)
    else:
        key = {"pk": f"manifest#{bad.id}", "sk": "manifest"}
        deployment.dynamodb.delete_item(TableName="ledger", Key=key)
    # When, Then
    assert run_status({"run": RUN}, deployment.services) == {"open": 0, "terminal": 1, "held": 0, "denied": 0}
    result = settled(deployment)
    assert (result["verdict"], result["done"], result["open"], result["rows"]) == ("FAILED", 1, 1, 20)
    problem = (
        f"the ledger row of manifest {bad.id} is damaged" if is_there else f"the ledger has no row of manifest {bad.id}"
    )
    assert result["message"].startswith(f"1 manifest has no row that can be used (first: {problem}")
    assert "restore the ledger to a point in time before" in result["message"]


@pytest.fixture
def row(deployment: Deployment) -> ManifestRow:
    """The only manifest of an execution: DONE, with an object in the lake and one in the quarantine."""
    (row,) = planned(deployment, "a.json")
    done(deployment, row, 10, 2)
    return row


@pytest.mark.parametrize(
    ("bucket", "change", "problem"),
    [
        ("lake", None, "is missing"),
        ("quarantine", None, "is missing"),
        ("lake", lambda _: b"short", "has 5 bytes, and {size} were published"),
        ("lake", lambda body: body[::-1], "was replaced after it was published"),
    ],
)
def test_an_object_that_was_deleted_or_replaced_is_found(
    deployment: Deployment, row: ManifestRow, bucket: str, change: Callable[[bytes], bytes] | None, problem: str
) -> None:
    # Given
    (key,) = deployment.keys(bucket)
    body = deployment.raw_s3.get_object(Bucket=bucket, Key=key)["Body"].read()
    if change is None:
        deployment.raw_s3.delete_object(Bucket=bucket, Key=key)
    else:
        deployment.raw_s3.put_object(Bucket=bucket, Key=key, Body=change(body))
    # When
    result = settled(deployment)
    # Then
    uri, found = f"s3://{bucket}/{key}", problem.format(size=len(body))
    assert (result["verdict"], result["damagedObjects"], result["notify"]) == ("FAILED", 1, True)
    assert result["message"].startswith(f"1 published object is damaged (first: {uri} {found})")
    assert document(deployment, VERDICT)["damaged"] == [{"manifest": row.id, "uri": uri, "problem": found}]


def test_the_objects_of_an_emptied_bucket_are_counted_and_few_are_compared(deployment: Deployment) -> None:
    # Given three manifests with deleted objects
    for row in planned(deployment, "a.json", "b.json", "c.json"):
        done(deployment, row, 10, 2)
    for bucket in ("lake", "quarantine"):
        for key in deployment.keys(bucket):
            deployment.raw_s3.delete_object(Bucket=bucket, Key=key)
    deployment.patch.setattr(published, "MAX_NAMED_OBJECTS", 1)
    deployment.patch.setattr(published, "batches_of", lambda items, *_: [[item] for item in items])
    compare = Mock(wraps=published._find_damage)
    deployment.patch.setattr(published, "_find_damage", compare)
    # Then
    assert settled(deployment)["damagedObjects"] == 6
    assert compare.call_count == len(document(deployment, VERDICT)["damaged"]) == 1


def test_a_commit_document_that_is_gone_is_a_finding_and_not_an_error(deployment: Deployment, row: ManifestRow) -> None:
    (key,) = deployment.keys("control", "commits/")
    deployment.raw_s3.delete_object(Bucket="control", Key=key)
    result = settled(deployment)
    assert (result["verdict"], result["damagedObjects"]) == ("FAILED", 1)
    (damage,) = document(deployment, VERDICT)["damaged"]
    assert damage["uri"] == f"s3://control/{key}"
    assert "is gone" in damage["problem"]


@pytest.mark.parametrize("body", [None, b'{"files": [', b"{}", b'{"sources": []}'])
def test_a_damaged_result_document_ends_the_verdict_of_no_manifest(deployment: Deployment, body: bytes | None) -> None:
    # Given: two manifests with unreadable files, one with a missing or truncated result document; both have short
    # objects, so their documents are read
    first, second = planned(deployment, "a.json", "b.json")
    for row in (first, second):
        done(deployment, row, 10, unreadable="s3://input/b")
    for key in deployment.keys("lake"):
        deployment.raw_s3.put_object(Bucket="lake", Key=key, Body=b"short")
    if body is None:
        deployment.raw_s3.delete_object(Bucket="control", Key=result_key(first.id, 1))
    else:
        deployment.raw_s3.put_object(Bucket="control", Key=result_key(first.id, 1), Body=body)
    # Then keys and sizes of the first manifest are compared
    assert settled(deployment)["damagedObjects"] == 2
    assert {item["manifest"] for item in document(deployment, VERDICT)["damaged"]} == {first.id, second.id}
    assert [item["manifest"] for item in document(deployment, VERDICT)["unreadableFiles"]] == [second.id]


def test_while_a_manifest_is_open_the_objects_are_not_listed(deployment: Deployment) -> None:
    # Given: two manifests, one still in progress, and the other with a deleted object
    first, second = planned(deployment, "a.json", "b.json")
    done(deployment, first, 10)
    deployment.claimed(deployment.row(second.id))
    (key,) = deployment.keys("lake")
    deployment.raw_s3.delete_object(Bucket="lake", Key=key)
    # Then: settle is called again while the verdict is OPEN, and the last verdict has the finding
    assert (settled(deployment)["verdict"], settled(deployment)["damagedObjects"]) == ("OPEN", 0)


def test_what_is_converted_again_meanwhile_is_left_to_its_own_execution(
    deployment: Deployment, row: ManifestRow
) -> None:
    # Given: a manifest with deleted objects, which a person forces after they were listed
    for bucket in ("lake", "quarantine"):
        for key in deployment.keys(bucket):
            deployment.raw_s3.delete_object(Bucket=bucket, Key=key)

    before = deployment.row(row.id)

    def list_and_force(*arguments: Any) -> Any:
        found = list_digests(*arguments)
        deployment.ledger.manifests.force(before, deployment.now, "request")
        return found

    deployment.patch.setattr(published, "list_digests", list_and_force)
    # Then
    assert settled(deployment)["damagedObjects"] == 0


FOLDER = "orders/date=2026-11-20/hour=09/"


@given(
    listed=st.lists(st.tuples(st.sampled_from("abcd"), st.integers(0, 30)), unique=True),
    expected=st.sets(st.sampled_from("abcdx")),
    page=st.integers(1, 4),
    many_deleted=st.booleans(),
)
def test_a_digest_covers_the_objects_under_its_prefix_whatever_lies_between(
    listed: list[tuple[str, int]], expected: set[str], page: int, *, many_deleted: bool
) -> None:
    # Given: objects of manifests and other objects in one folder, listed in small pages and in empty ones
    s3 = FakeS3(MORNING)
    s3.PAGE_SIZE = page
    s3.create_bucket(Bucket="lake")
    keys = [f"{FOLDER}{manifest}-g1-{number:05d}.parquet" for manifest, number in listed]
    for key in keys:
        s3.put_object(Bucket="lake", Key=key, Body=key.encode())
    prefixes = sorted(f"{FOLDER}{manifest}-g1-" for manifest in expected)
    if many_deleted:
        s3.list_objects_v2 = after_empty_pages(s3.list_objects_v2)  # type: ignore[method-assign]
    # When
    found = list_digests(s3, "lake", FOLDER, prefixes)  # type: ignore[arg-type]
    # Then
    objects = s3.buckets["lake"]
    assert found == [
        digest_objects((key, len(objects[key].body), objects[key].etag) for key in keys if key.startswith(prefix))
        for prefix in prefixes
    ]


def test_the_listing_leaps_over_what_no_manifest_of_the_night_has_written() -> None:
    # Given: a folder of three pages, with the manifest's objects on the last one
    s3 = FakeS3(MORNING)
    s3.PAGE_SIZE = 10
    s3.create_bucket(Bucket="lake")
    for number in range(30):
        s3.put_object(Bucket="lake", Key=f"{FOLDER}a-g1-{number:05d}.parquet", Body=b"")
    s3.put_object(Bucket="lake", Key=f"{FOLDER}b-g1-00000.parquet", Body=b"")
    pages = Mock(wraps=s3.list_objects_v2)
    s3.list_objects_v2 = pages  # type: ignore[method-assign]
    # When, Then
    (found,) = list_digests(s3, "lake", FOLDER, [f"{FOLDER}b-g1-"])  # type: ignore[arg-type]
    assert (found.count, pages.call_count) == (1, 1)
