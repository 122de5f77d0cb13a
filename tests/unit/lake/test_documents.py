"""Documents on S3 that a URI names."""

from typing import Any

import pytest

from lake.documents import find_document, read_uri
from lake.errors import InvalidDocumentError, InvalidInputError
from tests.unit.lake.world import World


@pytest.mark.parametrize("uri", ["", "s3://", "s3://bucket", "s3://bucket/", "bucket/key", "https://bucket/key"])
def test_an_invalid_uri_is_refused_before_any_request(uri: str) -> None:
    s3: Any = None
    with pytest.raises(InvalidInputError, match="is not a valid S3 URI"):
        read_uri(s3, uri)


@pytest.mark.parametrize("body", [b"", b'{"member": 1', b"[]", b"null", b"\xff", b"[" * 100_000, b"{}"])
def test_a_damaged_document_is_named_with_what_to_do(world: World, body: bytes) -> None:
    assert find_document(world.raw_s3, "control", "plans/a", "member") is None
    world.raw_s3.put_object(Bucket="control", Key="plans/a", Body=b'{"member": 1}')
    assert find_document(world.raw_s3, "control", "plans/a", "member") == {"member": 1}
    world.raw_s3.put_object(Bucket="control", Key="plans/a", Body=body)
    with pytest.raises(InvalidDocumentError, match="s3://control/plans/a is damaged: restore the object"):
        find_document(world.raw_s3, "control", "plans/a", "member")
