"""Events that lack a size, an ETag or a version are completed by the versions of their key, or refused."""

from datetime import timedelta
from typing import Any

import pytest

from lake.errors import InvalidInputError
from lake.manifest import ObjectVersion
from lake.manifest_documents import read_manifest
from router.requests.backfill import backfill
from router.route.events import AnnouncedVersion, VersionLookup
from router.route.handler import route
from tests.unit.router.conftest import Deployment
from tests.unit.router.events import batch, failures, message, s3_record

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
    with pytest.raises(InvalidInputError, match="put the file again"):
        VersionLookup(deployment.services).complete(announced)


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
