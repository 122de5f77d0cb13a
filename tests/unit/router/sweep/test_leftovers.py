"""Uploads and objects that no publish needs are removed when the ledger says so; copies made by people stay."""

import hashlib
from datetime import timedelta
from typing import Any
from unittest.mock import Mock

import pytest

from lake.layout import commit_key, lake_key, manifest_prefix, preflight_key, quarantine_key
from lake.ledger import CommitReference, ManifestRow, State
from lake.ledger.table import LedgerTable
from lake.time import iso_utc
from router.sweep import leftovers
from router.sweep.handler import sweep
from router.sweep.leftovers import delete_replaced
from router.sweep.repair import Repair
from tests.unit.router.conftest import Deployment
from tests.unit.router.sweep.sweeping import changes, committed, published, swept, unfinished, upload, uploaded


def test_uploads_are_aborted_only_when_no_publish_can_need_them(deployment: Deployment) -> None:
    # Given uploads of a running attempt, of a committed one (named and stray) and of a DONE manifest
    uploaded(deployment, deployment.claimed(deployment.queued("a")))
    publishing = committed(deployment, deployment.claimed(deployment.queued("b")))
    useless = [upload(deployment, "lake", lake_key(publishing.partition, publishing.id, 1, 70))]
    done = published(deployment, deployment.queued("c"))
    useless += [upload(deployment, "quarantine", quarantine_key(done.partition, done.id, 1, 71))]
    # And of a superseded manifest, of an earlier generation, and of a preflight
    superseded = deployment.queued("d", "e")
    useless += uploaded(deployment, superseded)
    deployment.superseded(superseded, deployment.manifest("d", "e"))
    forced = published(deployment, deployment.queued("f"))
    useless += [upload(deployment, "lake", lake_key(forced.partition, forced.id, 1, 9))]
    assert deployment.ledger.manifests.force(forced, deployment.now, "request")
    useless += [upload(deployment, bucket, preflight_key("jr_1")) for bucket in ("lake", "quarantine")]
    # When the sweep runs
    assert changes(sweep(deployment.services)) == {"aborted": len(useless)}
    # Then only what can never be published is aborted
    left = unfinished(deployment)
    assert {item.key for item in useless}.isdisjoint(left)
    assert len(left) == 6


def test_an_unreadable_commit_document_stops_no_other_upload(deployment: Deployment) -> None:
    # Given uploads of a PUBLISHING manifest whose committed document has an unknown format, and of one that is DONE
    claim = deployment.claimed(deployment.queued("a"))
    row, _ = claim, uploaded(deployment, claim)
    body = b'{"format":99}'
    key = commit_key(row.id, 1, 1, "n")
    deployment.raw_s3.put_object(Bucket="control", Key=key, Body=body)
    reference = CommitReference(key, hashlib.sha256(body).hexdigest())
    deployment.ledger.manifests.commit(claim, reference, deployment.now)
    done = published(deployment, deployment.queued("b"))
    late = upload(deployment, "quarantine", quarantine_key(done.partition, done.id, 1, 71))
    # When the sweep runs
    assert changes(sweep(deployment.services)) == {"aborted": 1}
    # Then the uploads of the first manifest are kept
    assert late.key not in unfinished(deployment)
    assert len(unfinished(deployment)) == 3


def reprocessed(deployment: Deployment, name: str = "a") -> ManifestRow:
    """A manifest whose second generation is published."""
    row = published(deployment, deployment.queued(name))
    assert deployment.ledger.manifests.force(row, deployment.now, "request")
    return published(deployment, deployment.row(row.id))


def generations(deployment: Deployment) -> set[str]:
    keys = deployment.keys("lake") + deployment.keys("quarantine")
    return {key.rsplit("-", 2)[1] for key in keys if not key.endswith("_complete.json")}


def test_a_deletion_lists_the_objects_of_its_manifest_and_no_others(deployment: Deployment) -> None:
    row = reprocessed(deployment)
    deployment.wait(timedelta(minutes=61))
    listed = Mock(wraps=deployment.raw_s3.list_objects_v2)
    deployment.patch.setattr(deployment.raw_s3, "list_objects_v2", listed)
    # When the first sweep after the grace period runs, Then its duration does not depend on the size of the lake
    assert sweep(deployment.services)["deleted"] == 3
    prefix = manifest_prefix(row.partition, row.id)
    prefixes = [(call.kwargs["Bucket"], call.kwargs.get("Prefix")) for call in listed.call_args_list]
    assert [item for item in prefixes if item[0] != "control"] == [("lake", prefix), ("quarantine", prefix)]
    assert generations(deployment) == {"g2"}


def test_deletions_continue_where_the_last_sweep_ran_out_of_time(deployment: Deployment) -> None:
    # Given replaced generations, the first of which a table keeps, and sweeps with time for one generation
    first = reprocessed(deployment).id
    for name in "bc":
        deployment.wait(timedelta(minutes=1))
        reprocessed(deployment, name)
    deployment.wait(timedelta(minutes=61))
    deployment.patch.setattr(leftovers, "PARALLEL_REQUESTS", 1)
    delete = leftovers._delete
    deployment.patch.setattr(
        leftovers, "_delete", lambda repair, due, *rest: due.manifest != first and delete(repair, due, *rest)
    )
    expired = iter([False, True, False, True, False, False])
    deployment.patch.setattr(Repair, "expired", property(lambda _: next(expired)))
    deleted = []
    for _ in range(4):
        repair = Repair(deployment.services, deployment.now)
        delete_replaced(repair)
        deleted.append(repair.counts["deleted"])
    assert deleted == [0, 3, 3, 0]


def test_a_grace_period_can_become_longer_after_the_last_deletion(deployment: Deployment) -> None:
    repair = Repair(deployment.services, deployment.now)
    repair.save_position(leftovers.LISTING, {"after": iso_utc(deployment.now)})
    query = LedgerTable.query

    def strict(table: LedgerTable, pk: str, *, after: str = "", before: str = "", index: bool = False) -> Any:
        assert after <= before, "DynamoDB refuses this, and moto does not"
        return query(table, pk, after=after, before=before, index=index)

    deployment.patch.setattr(LedgerTable, "query", strict)
    assert swept(deployment) == {}
    assert repair.read_position(leftovers.LISTING) == {"after": "0"}


def test_a_generation_that_was_replaced_again_stays_for_the_last_grace_period(deployment: Deployment) -> None:
    # Given generation 3, published shortly before the deletion of generation 1 is due
    row = reprocessed(deployment)
    deployment.wait(timedelta(minutes=59))
    assert deployment.ledger.manifests.force(row, deployment.now, "request")
    published(deployment, deployment.row(row.id))
    # When that deletion is due, then queries may still read generation 2
    deployment.wait(timedelta(minutes=2))
    assert sweep(deployment.services)["deleted"] == 0
    deployment.wait(timedelta(minutes=59))
    assert sweep(deployment.services)["deleted"] == 6
    assert generations(deployment) == {"g3"}


def test_remains_of_a_failed_publish_are_deleted_and_the_published_generation_is_kept(deployment: Deployment) -> None:
    # Given a publish that has failed, and a process that died before it deleted the completed objects
    row = published(deployment, deployment.queued("a"))
    deployment.ledger.manifests.force(row, deployment.now, "request")
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
    # Then the objects of the manifest without a document wait for a person
    left = [key for key in deployment.keys("lake") if "-g1-" in key]
    assert left
    assert all(first.id in key and second.id not in key for key in left)


def test_copies_of_a_person_are_kept(deployment: Deployment) -> None:
    # Given a person's copies of an object of generation 1, which generation 2 has replaced, and an upload of one
    row = published(deployment, deployment.queued("a"))
    own = lake_key(row.partition, row.id, 1, 0)
    name, stem = own.rsplit("/", 1)[-1], own.removesuffix(".parquet")
    elsewhere = f"analysis/{own}"
    other_hour = f"orders/date=2026-11-20/hour=10/{name}"
    places = (elsewhere, other_hour, f"{stem}-copy.parquet", f"{own}.bak", f"{stem}/{name}")
    for key in places:
        deployment.raw_s3.put_object(Bucket="lake", Key=key, Body=b"copy")
    upload(deployment, "lake", elsewhere)
    deployment.ledger.manifests.force(row, deployment.now, "request")
    published(deployment, deployment.row(row.id))
    deployment.wait(timedelta(hours=5))
    # When the sweep deletes that generation
    assert changes(sweep(deployment.services)) == {"deleted": 3}
    # Then the copies are still there
    assert set(places) < set(deployment.keys("lake"))
    assert own not in deployment.keys("lake")
    assert unfinished(deployment) == [elsewhere]
