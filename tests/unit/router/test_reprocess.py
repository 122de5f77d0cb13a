"""reprocess: ended manifests are queued once in their next generation; open ones stay unchanged."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from unittest.mock import Mock

import pytest

from lake.ledger import Published
from lake.manifest import Lane, ObjectVersion, Partition
from lake.successors import follow
from router.ownership.owner import RoutedArrival
from router.ownership.take import take_ownership
from router.plan.handler import plan
from router.requests import reprocess as handler_module
from router.requests.reprocess import reprocess
from tests.unit.lake.world import DOCUMENT, PARTITION, TOTALS
from tests.unit.router.conftest import Deployment
from tests.unit.router.owning import convert, counts, done, failed, owned
from tests.unit.router.planning import HOURS


def superseded(deployment: Deployment, manifest: str, *parts: tuple[str, ...]) -> list[str]:
    """Split the manifest into successors, one per file; return their ids."""
    successors = [deployment.manifest(*part) for part in parts]
    deployment.superseded(deployment.row(manifest), *successors)
    return [item.id for item in successors]


def ask(deployment: Deployment, *names: str, request: str = "request-1", **fields: Any) -> dict[str, Any]:
    files = {"files": [f"s3://input/orders/{name}" for name in names]} if names else {}
    return reprocess({"request": request, **files, **fields}, deployment.services)


def generations(deployment: Deployment, *manifests: str) -> list[tuple[str, int]]:
    rows = [deployment.row(manifest) for manifest in manifests]
    return [(row.state, row.generation) for row in rows]


def test_a_failed_manifest_is_queued_for_the_batch_lane_by_its_id(deployment: Deployment) -> None:
    # Given: a manifest of the stream lane that FAILED
    manifest = failed(deployment, "a", "b", lane=Lane.STREAM)
    # When
    answer = ask(deployment, manifests=[manifest])
    # Then: it is in the next plan, and the answer has its former state
    assert counts(answer) == {"queued": 1, "files": 2}
    assert (answer["bytes"], answer["token"]) == (200, None)
    row = deployment.row(manifest)
    assert (row.state, row.lane, row.generation, row.reason) == ("QUEUED", "batch", 2, None)
    assert plan({"execution": "overnight"}, deployment.services)["manifests"] == 1
    (message,) = answer["messages"]
    assert message == (
        f"manifest {manifest} (orders#2026-11-20T09, 2 files) is queued in generation 2; "
        "it was FAILED: gave up after 3 attempts"
    )
    assert answer["selection"] == {"dataset": "orders", "from": "2026-11-20T09", "to": "2026-11-20T09"}


def test_a_file_is_reprocessed_with_the_manifest_that_holds_it_now(deployment: Deployment) -> None:
    # Given: a manifest that was split, with one half FAILED and the other DONE
    source = owned(deployment, "a", "b", "c")
    first, second = superseded(deployment, source, ("a",), ("b", "c"))
    convert(deployment, first)
    deployment.ledger.manifests.fail(deployment.row(second), "because", deployment.now)
    # When, Then: the converted file stays
    assert counts(ask(deployment, "a")) == {"converted": 1}
    assert counts(ask(deployment, "c", "b")) == {"queued": 1, "files": 2}
    assert generations(deployment, first, second) == [("DONE", 1), ("QUEUED", 2)]
    # And the id of the manifest selects all of its successors, each of which is read once
    again = ask(deployment, manifests=[source, second], all=True, request="request-2")
    assert counts(again) == {"queued": 1, "open": 1, "files": 1}


def test_a_manifest_with_unreadable_files_is_queued_and_one_without_is_not(deployment: Deployment) -> None:
    # Given: two DONE manifests; one left out a file, which is in the quarantine by reference
    partial, complete = done(deployment, "a", "b", unreadable=True), done(deployment, "c")
    # When
    answer = ask(deployment, manifests=[partial, complete])
    # Then: its next generation reads every file again, and its published objects stay
    assert counts(answer) == {"queued": 1, "converted": 1, "files": 2}
    row = deployment.row(partial)
    assert (row.state, row.exclusions, row.published) == ("QUEUED", None, Published(1, DOCUMENT, TOTALS))
    stays, queued = sorted(answer["messages"], key=lambda message: "is queued" in message)
    assert "some of its files could not be read" in queued
    assert f"'hybrid-router reprocess --manifest {complete} --all' converts it again" in stays


def test_open_manifests_stay_as_they_are(deployment: Deployment) -> None:
    queued, running, publishing = (owned(deployment, name) for name in "abc")
    deployment.claimed(deployment.row(running))
    deployment.committed(deployment.claimed(deployment.row(publishing)))
    answer = ask(deployment, manifests=[queued, running, publishing], all=True)
    assert counts(answer) == {"open": 3}
    messages = "\n".join(answer["messages"])
    assert "waits in the batch lane already: its next run converts it" in messages
    assert "is RUNNING by run jr_1: wait until it has ended" in messages


def test_what_the_ledger_does_not_know_is_counted(deployment: Deployment) -> None:
    # Given a manifest without a document: its files have another owner
    abandoned = "20261120T093000" + "1" * 20
    deployment.ledger.manifests.abandon(abandoned, deployment.now)
    assert counts(ask(deployment, manifests=["20261120T093000" + "0" * 20, abandoned], all=True)) == {"unknown": 2}
    answer = ask(deployment, "nowhere")
    assert counts(answer) == {"unknown": 1}
    assert "has no row of s3://input/orders/nowhere" in answer["messages"][0]


def test_a_request_queues_a_manifest_once_however_often_it_is_repeated(deployment: Deployment) -> None:
    # Given: a request whose answer is lost
    manifest = done(deployment, "a")
    selection = ask(deployment, manifests=[manifest], all=True)["selection"]
    # When, Then overnight can be started for what it has queued
    answer = ask(deployment, manifests=[manifest], all=True)
    assert counts(answer) == {"repeated": 1}
    assert answer["selection"] == selection
    # And after the manifest was converted again, there is nothing to start
    convert(deployment, manifest)
    answer = ask(deployment, manifests=[manifest], all=True)
    assert (counts(answer), answer["selection"]) == ({"repeated": 1}, None)
    assert generations(deployment, manifest) == [("DONE", 2)]
    # And: another request queues it again
    assert counts(ask(deployment, manifests=[manifest], all=True, request="request-2"))["queued"] == 1
    assert generations(deployment, manifest) == [("QUEUED", 3)]


def test_a_successor_that_cannot_be_read_stops_no_other(deployment: Deployment) -> None:
    # Given: the only successor has lost its document, so the file must be in it
    source, other = owned(deployment, "a"), failed(deployment, "b")
    (half,) = superseded(deployment, source, ("a",))
    deployment.raw_s3.delete_object(Bucket="control", Key=f"manifests/{half[:8]}/{half}.json")
    # When, Then
    assert counts(ask(deployment, "a", "b")) == {"queued": 1, "files": 1, "open": 1}
    assert generations(deployment, other) == [("QUEUED", 2)]


@pytest.mark.parametrize(
    ("fields", "queued"),
    [
        ({"dataset": "orders"}, ["orders8", "orders9"]),
        ({"from": "2026-11-20T09"}, ["clicks9", "orders9"]),
        ({"dataset": "clicks", "from": "2026-11-20T08", "to": "2026-11-20T08"}, ["clicks8"]),
        ({"from": "0001-01-01", "to": "9999-12-31"}, ["clicks8", "clicks9", "orders8", "orders9"]),
        ({"to": "2026-11-19"}, []),
    ],
)
def test_datasets_and_hours_select_what_failed(
    deployment: Deployment, fields: dict[str, Any], queued: list[str]
) -> None:
    # Given manifests that were made days after their hours
    deployment.wait(timedelta(days=3))
    manifests = {f"{hour.dataset}{hour.hour}": failed(deployment, "a", str(hour), partition=hour) for hour in HOURS}
    # When, Then
    assert ask(deployment, **fields)["queued"] == len(queued)
    expected = [("QUEUED", 2) if name in queued else ("FAILED", 1) for name in manifests]
    assert generations(deployment, *manifests.values()) == expected


def test_a_damaged_row_stops_no_other_of_a_selection(deployment: Deployment) -> None:
    damaged, intact = failed(deployment, "a"), failed(deployment, "b")
    # Given manifests of a later hour and of another dataset, which are not even read
    others = (replace(PARTITION, hour=10), replace(PARTITION, dataset="clicks"))
    for manifest in (damaged, *(failed(deployment, "c", partition=partition) for partition in others)):
        deployment.damage(deployment.row(manifest))
    answer = ask(deployment, dataset="orders", to=PARTITION.stamp)
    assert counts(answer) == {"queued": 1, "unusable": 1, "files": 1}
    assert f"the ledger row of manifest {damaged} is damaged" in answer["messages"][0]
    assert generations(deployment, intact) == [("QUEUED", 2)]


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


def test_a_selection_continues_page_by_page_and_its_totals_cover_all_pages(deployment: Deployment) -> None:
    # Given: one hour at a time, of different datasets, and a clock that allows one per call
    deployment.patch.setattr(handler_module, "TIME_PER_CALL", timedelta())
    deployment.patch.setattr(handler_module, "MANIFESTS_AT_ONCE", 1)
    later = Partition("orders", "2026-11-21", 0)
    places = (PARTITION, Partition("clicks", "2026-11-20", 0), later, PARTITION, later)
    manifests = [failed(deployment, str(number), partition=place) for number, place in enumerate(places)]
    # When
    totals, token = [], None
    for _ in range(3):
        continued: dict[str, Any] = {"from": "2026-11-20", "token": token}
        answer = ask(deployment, **continued)
        totals.append(answer["queued"])
        token = answer["token"]
    # Then
    assert (totals, token) == ([1, 3, 5], None)
    assert answer["selection"] == {"from": "2026-11-20T00", "to": "2026-11-21T00"}
    assert generations(deployment, *manifests) == [("QUEUED", 2)] * 5
    # And: the whole request again, from the beginning
    assert ask(deployment, **{"from": "2026-11-20"})["repeated"] == 1


def test_hours_of_few_manifests_are_visited_together(deployment: Deployment) -> None:
    # Given: a dataset with one manifest in each hour
    for hour in range(12):
        failed(deployment, str(hour), partition=replace(PARTITION, hour=hour))
    deployment.patch.setattr(handler_module, "follow", followed := Mock(wraps=follow))
    # When
    assert ask(deployment, dataset="orders")["queued"] == 12
    # Then it does not wait for the requests of one hour before those of the next
    assert followed.call_count == 1


def put(deployment: Deployment, name: str) -> ObjectVersion:
    answer = deployment.raw_s3.put_object(Bucket="input", Key=f"orders/{name}", Body=name.encode())
    return ObjectVersion.of(
        "input", f"orders/{name}", answer["ETag"], len(name), deployment.now, answer.get("VersionId")
    )


def converted(deployment: Deployment, *files: ObjectVersion) -> str:
    """Create a DONE manifest of the files."""
    routed = [RoutedArrival(file, PARTITION, Lane.BATCH, "test") for file in files]
    take_ownership(deployment.services, routed, {})
    (manifest,) = deployment.waiting()
    return deployment.published(manifest).id


def dry_run(deployment: Deployment, manifest: str) -> str:
    answer: dict[str, Any] = ask(deployment, manifests=[manifest], all=True, dryRun=True)
    assert (answer["queued"], "would be queued in generation 2" in answer["messages"][0]) == (1, True)
    (message,) = answer["messages"]
    return str(message)


@pytest.mark.parametrize(("versions", "replaced"), [(False, False), (True, False), (False, True)])
def test_what_is_gone_is_named(deployment: Deployment, versions: bool, replaced: bool) -> None:
    # Given a converted manifest, one file of which was deleted or replaced since; a longer key is another file
    if versions:
        deployment.keep_versions()
    put(deployment, "aa")
    file = put(deployment, "a")
    manifest = converted(deployment, file, put(deployment, "b"))
    assert dry_run(deployment, manifest).endswith("it was DONE")
    which = {"VersionId": file.version_id} if versions else {}
    if replaced:
        deployment.raw_s3.put_object(Bucket="input", Key="orders/a", Body=b"another")
    else:
        deployment.raw_s3.delete_object(Bucket="input", Key="orders/a", **which)
    deployment.faults.writes.clear()
    # When, Then
    gone = "; 1 of its files is gone or archived (first: s3://input/orders/a): a file with published rows keeps them,"
    assert gone in dry_run(deployment, manifest)
    assert deployment.row(manifest).generation == 1
    assert deployment.faults.writes == []


@pytest.mark.parametrize(
    ("status", "is_read"),
    [
        ({}, False),
        ({"IsRestoreInProgress": True}, False),
        ({"IsRestoreInProgress": False, "RestoreExpiryDate": datetime(2026, 11, 30, tzinfo=UTC)}, True),
    ],
)
def test_an_archived_object_is_read_once_it_is_restored(
    deployment: Deployment, status: dict[str, Any], *, is_read: bool
) -> None:
    file = put(deployment, "a")
    item = {"Key": file.key, "VersionId": "null", "ETag": file.etag, "StorageClass": "DEEP_ARCHIVE"}
    page = {"Versions": [{**item, "RestoreStatus": status}], "IsTruncated": False}
    manifest = converted(deployment, file)
    deployment.patch.setattr(deployment.services.s3, "list_object_versions", Mock(return_value=page))
    assert ("is gone or archived" in dry_run(deployment, manifest)) != is_read


def test_repaired_lines_are_not_searched_in_the_input(deployment: Deployment) -> None:
    # Given a manifest of resubmitted lines: nothing deletes them, and the function may not list their bucket
    lines = replace(put(deployment, "a"), bucket="control", key="resubmissions/a.ndjson")
    # When, Then
    assert dry_run(deployment, converted(deployment, lines)).endswith("it was DONE")


def test_the_number_of_checks_is_bounded(deployment: Deployment) -> None:
    deployment.patch.setattr(handler_module, "MAX_CHECKED_FILES", 1)
    manifest = converted(deployment, put(deployment, "a"), put(deployment, "b"))
    assert "its files were not checked" in dry_run(deployment, manifest)
