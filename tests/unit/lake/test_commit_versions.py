"""Roll-forward of what another version of the code has committed."""

import hashlib

import pytest

from lake.errors import NewerDocumentError
from lake.layout import lake_key
from lake.ledger import CommitReference
from tests.unit.lake.test_lake_publish import roll
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
