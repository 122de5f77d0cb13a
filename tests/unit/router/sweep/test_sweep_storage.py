"""Repairs of the sweep on S3: uploads, replaced objects, listings, objects without an arrival."""

import hashlib

from lake.layout import commit_key, lake_key, preflight_key, quarantine_key
from lake.ledger import CommitReference
from router.sweep.handler import sweep
from tests.unit.router.conftest import Deployment
from tests.unit.router.sweep.sweeping import changes, committed, published, unfinished, upload, uploaded


def test_uploads_are_aborted_only_when_no_publish_can_need_them(deployment: Deployment) -> None:
    # Given uploads of a running attempt, of a committed one (named and stray) and of one that is done
    running = deployment.claimed(deployment.queued("a")).row
    uploaded(deployment, running)
    publishing = committed(deployment, deployment.claimed(deployment.queued("b")))
    stray = upload(deployment, "lake", lake_key(publishing.partition, publishing.id, 1, 70))
    done = published(deployment, deployment.queued("c"))
    late = upload(deployment, "quarantine", quarantine_key(done.partition, done.id, 1, 71))
    # When the sweep runs
    assert changes(sweep(deployment.services)) == {"aborted": 2}
    # Then only what can never be published is aborted
    left = unfinished(deployment)
    assert stray.key not in left
    assert late.key not in left
    assert len(left) == 6


def test_uploads_that_a_preflight_left_are_aborted(deployment: Deployment) -> None:
    for bucket in ("lake", "quarantine"):
        upload(deployment, bucket, preflight_key("jr_1"))
    assert changes(sweep(deployment.services)) == {"aborted": 2}
    assert not unfinished(deployment)


def test_uploads_of_a_superseded_manifest_and_of_an_earlier_generation_are_aborted(deployment: Deployment) -> None:
    row = deployment.queued("a", "b")
    uploaded(deployment, row)
    deployment.ledger.manifests.supersede(row, [deployment.manifest("a", "b")], "test", deployment.now)
    forced = published(deployment, deployment.queued("c"))
    upload(deployment, "lake", lake_key(forced.partition, forced.id, 1, 9))
    assert deployment.ledger.manifests.force(forced, deployment.now)
    assert changes(sweep(deployment.services)) == {"aborted": 4}


def test_a_commit_document_that_nobody_can_read_stops_no_other_upload(deployment: Deployment) -> None:
    # Given uploads of a PUBLISHING manifest whose committed document has an unknown format, and of one that is DONE
    claim = deployment.claimed(deployment.queued("a"))
    row, _ = claim.row, uploaded(deployment, claim.row)
    body = b'{"format":99}'
    key = commit_key(row.id, 1, 1, "n")
    deployment.raw_s3.put_object(Bucket="control", Key=key, Body=body)
    reference = CommitReference(key, hashlib.sha256(body).hexdigest())
    deployment.ledger.manifests.commit(claim, reference, deployment.now)
    done = published(deployment, deployment.queued("b"))
    late = upload(deployment, "quarantine", quarantine_key(done.partition, done.id, 1, 71))
    # When the sweep runs
    assert changes(sweep(deployment.services)) == {"aborted": 1}
    # Then the uploads of the first one are kept
    assert late.key not in unfinished(deployment)
    assert len(unfinished(deployment)) == 3
