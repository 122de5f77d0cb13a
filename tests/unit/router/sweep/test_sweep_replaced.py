"""Objects of replaced and failed generations are deleted when it is due by the ledger, not by looking for them."""

from datetime import timedelta
from typing import Any

import pytest

from lake.layout import lake_key
from lake.ledger import ManifestRow, State
from router.sweep.handler import sweep
from router.sweep.leftovers import delete_replaced
from router.sweep.repair import Repair
from tests.load.request_counts import counted_requests
from tests.unit.router.conftest import Deployment
from tests.unit.router.sweep.sweeping import committed, published

PAGES_BEFORE = 2000
"""Of 1,000 objects each, in front of the replaced ones."""
SECONDS_PER_PAGE = 0.12


def reprocessed(deployment: Deployment, name: str = "a") -> ManifestRow:
    """A manifest whose second generation is published."""
    row = published(deployment, deployment.queued(name))
    assert deployment.ledger.manifests.force(row, deployment.now)
    return published(deployment, deployment.row(row.id))


def generations(deployment: Deployment) -> set[str]:
    keys = deployment.keys("lake") + deployment.keys("quarantine")
    return {key.rsplit("-", 2)[1] for key in keys if not key.endswith("_complete.json")}


def test_two_million_objects_before_a_replaced_generation_do_not_delay_its_deletion(
    deployment: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Given a replaced generation in a lake of two million other objects, each page of which takes its time
    reprocessed(deployment)
    deployment.wait(timedelta(minutes=61))
    listing = deployment.raw_s3.list_objects_v2

    def long_listing(**request: Any) -> Any:
        deployment.wait(timedelta(seconds=SECONDS_PER_PAGE))
        if request["Bucket"] != "lake" or request.get("Prefix"):
            return listing(**request)
        page = int(request["StartAfter"].partition("/")[2].partition("-")[0] or 0) // 1000
        if page == PAGES_BEFORE:
            return listing(**{**request, "StartAfter": ""})
        keys = [f"a/{page * 1000 + number + 1:08}-copy" for number in range(1000)]
        return {"Contents": [{"Key": key} for key in keys], "IsTruncated": True}

    monkeypatch.setattr(deployment.raw_s3, "list_objects_v2", long_listing)
    # When the first sweep after the grace period runs
    done = sweep(deployment.services)
    # Then
    monkeypatch.undo()
    assert done["deleted"] == 3
    assert generations(deployment) == {"g2"}


def test_the_deletions_of_a_dataset_read_its_table_once(deployment: Deployment) -> None:
    for name in "abc":
        reprocessed(deployment, name)
    deployment.wait(timedelta(minutes=61))
    repair = Repair(deployment.services, deployment.now + timedelta(minutes=1))
    with counted_requests() as counts:
        delete_replaced(repair)
    # Then each has read the row of its manifest, and all of them the row of a table, which the dataset does not have
    assert repair.counts["deleted"] == 9
    assert (counts["GetItem"], counts["BatchGetItem"]) == (3, 1)


def test_a_generation_is_deleted_after_the_grace_period_of_its_successor(deployment: Deployment) -> None:
    # Given generation 1 published and generation 2 queued for hours
    row = published(deployment, deployment.queued("a"))
    assert deployment.ledger.manifests.force(row, deployment.now)
    deployment.wait(timedelta(hours=5))
    assert sweep(deployment.services)["deleted"] == 0
    # When generation 2 is published, then both are visible for the grace period
    published(deployment, deployment.row(row.id))
    deployment.wait(timedelta(minutes=59))
    assert sweep(deployment.services)["deleted"] == 0
    assert generations(deployment) == {"g1", "g2"}
    deployment.wait(timedelta(minutes=2))
    assert sweep(deployment.services)["deleted"] == 3
    assert generations(deployment) == {"g2"}
    # And nothing is left to do
    assert sweep(deployment.services)["deleted"] == 0
    assert list(deployment.ledger.deletions.due(deployment.now)) == []


def test_a_reprocess_that_waits_again_does_not_delay_the_deletion(deployment: Deployment) -> None:
    row = reprocessed(deployment)
    deployment.wait(timedelta(minutes=61))
    # Given the next request, a moment before the sweep
    assert deployment.ledger.manifests.force(row, deployment.now)
    assert sweep(deployment.services)["deleted"] == 3
    assert generations(deployment) == {"g2"}


def test_a_generation_that_was_replaced_again_stays_for_the_last_grace_period(deployment: Deployment) -> None:
    # Given generation 3 published when the deletion of generation 1 is nearly due
    row = reprocessed(deployment)
    deployment.wait(timedelta(minutes=59))
    assert deployment.ledger.manifests.force(row, deployment.now)
    published(deployment, deployment.row(row.id))
    # When it is due, then queries may still read generation 2
    deployment.wait(timedelta(minutes=2))
    assert sweep(deployment.services)["deleted"] == 0
    deployment.wait(timedelta(minutes=59))
    assert sweep(deployment.services)["deleted"] == 6
    assert generations(deployment) == {"g3"}


def test_remains_of_a_failed_publish_are_deleted_and_the_published_generation_is_kept(deployment: Deployment) -> None:
    # Given a publish that has failed, and a process that died before it deleted what was completed
    row = published(deployment, deployment.queued("a"))
    deployment.ledger.manifests.force(row, deployment.now)
    publishing = committed(deployment, deployment.claimed(deployment.row(row.id)))
    deployment.raw_s3.put_object(Bucket="lake", Key=lake_key(row.partition, row.id, 2, 0), Body=b"half")
    assert deployment.ledger.manifests.fail(publishing, "test", deployment.now)
    # When
    deployment.wait(timedelta(minutes=61))
    # Then
    assert sweep(deployment.services)["deleted"] == 1
    assert generations(deployment) == {"g1"}
    assert deployment.row(row.id).state == State.FAILED


def test_a_generation_that_cannot_be_compared_stops_no_other_deletion(deployment: Deployment) -> None:
    # Given two reprocessed manifests, one without its commit document
    first, second = reprocessed(deployment), reprocessed(deployment)
    assert first.published is not None
    deployment.raw_s3.delete_object(Bucket="control", Key=first.published.document.key)
    deployment.wait(timedelta(minutes=61))
    # When
    with pytest.raises(Exception, match=f"{first.published.document.key} is gone"):
        sweep(deployment.services)
    # Then the objects of the first one wait for a person
    left = [key for key in deployment.keys("lake") if "-g1-" in key]
    assert left
    assert all(first.id in key and second.id not in key for key in left)
