"""Roll-forward of what another version of the code has committed."""

import hashlib

import pytest

from lake.errors import NewerDocumentError
from lake.layout import lake_key
from lake.ledger import CommitReference, State
from tests.unit.lake.test_lake_publish import BODIES, published, publishing, roll
from tests.unit.lake.uploads import upload
from tests.unit.lake.world import PARTITION, World


@pytest.mark.parametrize("body", [b"", b"[]", b"{}", b'{"format": 2}', b'{"format": 1, "partition": {}}'])
def test_a_commit_document_of_another_version_is_left_alone(world: World, body: bytes) -> None:
    # Given: a committed document that this version cannot read
    claim = world.claimed(world.queued("a.json"))
    upload(world.raw_s3, "lake", lake_key(PARTITION, claim.row.id, 1, 0), b"row", 1)
    world.raw_s3.put_object(Bucket="control", Key="commits/x.json", Body=body)
    reference = CommitReference("commits/x.json", hashlib.sha256(body).hexdigest())
    world.ledger.manifests.commit(claim, reference, world.now)
    before = world.row(claim.row.id)
    world.faults.reset()
    # When
    with pytest.raises(NewerDocumentError, match="deploy it again"):
        roll(world, before)
    # Then
    assert world.row(claim.row.id) == before
    assert world.faults.writes == []


def test_after_a_rollback_the_newer_version_publishes_what_it_committed(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Given: a version with another format has committed, and the version before it is deployed again
    with monkeypatch.context() as newer:
        newer.setattr("lake.commit.COMMIT_FORMAT", 2)
        row, _ = publishing(world)
    with pytest.raises(NewerDocumentError):
        roll(world, row)
    # When: the newer version is back
    monkeypatch.setattr("lake.commit.COMMIT_FORMAT", 2)
    # Then
    assert roll(world, world.row(row.id)) == State.DONE
    assert published(world) == list(BODIES)
