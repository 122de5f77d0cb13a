"""A dry run of a reprocess looks at the input first: what is gone, and what would happen."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any
from unittest.mock import Mock

import pytest

from lake.commit import SourceCount
from lake.manifest import Lane, ObjectVersion
from router.ownership.owner import RoutedArrival
from router.ownership.take import take_ownership
from router.requests import reprocess as inputs
from tests.unit.lake.world import PARTITION
from tests.unit.router.conftest import Deployment
from tests.unit.router.reprocessing import ask

NOTHING = "it would be DONE again with what it has published, and nothing would change"
ONE = "what it has published would stay, and 1 file that was not readable would be converted"


def put(deployment: Deployment, name: str) -> ObjectVersion:
    answer = deployment.raw_s3.put_object(Bucket="input", Key=f"orders/{name}", Body=name.encode())
    return ObjectVersion.of(
        "input", f"orders/{name}", answer["ETag"], len(name), deployment.now, answer.get("VersionId")
    )


def converted(deployment: Deployment, *files: ObjectVersion, unreadable: tuple[str, ...] = ()) -> str:
    """A DONE manifest of the files, some of which could not be read."""
    routed = [RoutedArrival(file, PARTITION, Lane.BATCH, "test") for file in files]
    take_ownership(deployment.services, routed, {})
    (manifest,) = deployment.waiting()
    sources = tuple(
        SourceCount(
            file.uri, file.version, file.size, 1, 1, 0, {}, None, "cut" if file.key.endswith(unreadable) else None
        )
        for file in files
    )
    return deployment.published(manifest, sources=sources).id


def dry_run(deployment: Deployment, manifest: str) -> str:
    answer: dict[str, Any] = ask(deployment, manifests=[manifest], only="all", dryRun=True)
    (message,) = answer["messages"]
    return str(message)


@pytest.mark.parametrize("versions", [False, True])
@pytest.mark.parametrize(
    ("gone", "unreadable", "expected"),
    [
        ((), (), "it was DONE"),
        (("a",), ("zz",), f"1 of its files is gone or archived (first: s3://input/orders/a): {NOTHING}"),
        (("a",), ("b",), f"1 of its files is gone or archived (first: s3://input/orders/a): {ONE}"),
        (("b",), ("b",), "(first: s3://input/orders/b), and would stay in the quarantine by reference"),
        (("a", "b"), ("b",), f"2 of its files are gone or archived (first: s3://input/orders/a): {NOTHING}"),
    ],
)
def test_what_is_gone_and_what_would_happen(
    deployment: Deployment, versions: bool, gone: tuple[str, ...], unreadable: tuple[str, ...], expected: str
) -> None:
    # Given a converted manifest, and files of it that have expired since; a longer key is another file
    if versions:
        deployment.raw_s3.put_bucket_versioning(Bucket="input", VersioningConfiguration={"Status": "Enabled"})
    put(deployment, "aa")
    files = {name: put(deployment, name) for name in ("a", "b")}
    manifest = converted(deployment, *files.values(), unreadable=unreadable or ("none",))
    for name in gone:
        version = files[name].version_id
        which = {} if version is None else {"VersionId": version}
        deployment.raw_s3.delete_object(Bucket="input", Key=f"orders/{name}", **which)
    # When, Then
    assert dry_run(deployment, manifest).endswith(expected)
    assert deployment.row(manifest).generation == 1


def test_a_replaced_object_is_gone(deployment: Deployment) -> None:
    manifest = converted(deployment, put(deployment, "a"))
    deployment.raw_s3.put_object(Bucket="input", Key="orders/a", Body=b"another")
    assert "1 of its files is gone or archived" in dry_run(deployment, manifest)


@pytest.mark.parametrize(
    ("status", "is_read"),
    [
        ({}, False),
        ({"IsRestoreInProgress": True}, False),
        ({"IsRestoreInProgress": False, "RestoreExpiryDate": datetime(2026, 11, 30, tzinfo=UTC)}, True),
    ],
)
def test_an_archived_object_is_read_once_it_is_restored(
    deployment: Deployment, monkeypatch: pytest.MonkeyPatch, status: dict[str, Any], *, is_read: bool
) -> None:
    file = put(deployment, "a")
    item = {"Key": file.key, "VersionId": "null", "ETag": file.etag, "StorageClass": "DEEP_ARCHIVE"}
    page = {"Versions": [{**item, "RestoreStatus": status}], "IsTruncated": False}
    manifest = converted(deployment, file)
    monkeypatch.setattr(deployment.services.s3, "list_object_versions", Mock(return_value=page))
    assert ("is gone or archived" in dry_run(deployment, manifest)) != is_read


def test_repaired_lines_are_not_looked_for(deployment: Deployment) -> None:
    # Given a manifest of lines that were given back: nothing deletes them, and the function may not list their bucket
    lines = replace(put(deployment, "a"), bucket="control", key="resubmissions/a.ndjson")
    # When, Then
    assert dry_run(deployment, converted(deployment, lines)).endswith("it was DONE")


def test_the_files_of_a_manifest_that_never_got_through_would_be_in_the_quarantine(deployment: Deployment) -> None:
    routed = [RoutedArrival(put(deployment, "a"), PARTITION, Lane.BATCH, "test")]
    take_ownership(deployment.services, routed, {})
    (manifest,) = deployment.waiting()
    assert deployment.ledger.manifests.fail(deployment.row(manifest.id), "it crashed", deployment.now)
    deployment.raw_s3.delete_object(Bucket="input", Key="orders/a")
    assert "gone or archived (first: s3://input/orders/a), and would be in the quarantine" in dry_run(
        deployment, manifest.id
    )


def test_the_number_of_looks_is_bounded(deployment: Deployment, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inputs, "MAX_LOOKS", 1)
    manifest = converted(deployment, put(deployment, "a"), put(deployment, "b"))
    assert "its files were not looked at" in dry_run(deployment, manifest)
