"""Manifest documents: what is written is read back; anything else is refused."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from lake.documents import encode_body
from lake.errors import InvalidDocumentError, NewerDocumentError
from lake.ledger.manifest_row import queued_row
from lake.manifest import decode_manifest, new_manifest_id
from lake.manifest_documents import read_manifest, write_manifest
from tests.unit.lake.world import World, file_of


def test_manifest_ids_are_fresh_and_sort_by_time() -> None:
    now = datetime(2026, 11, 20, 9, 30, tzinfo=UTC)
    ids = {new_manifest_id(now) for _ in range(1000)}
    assert len(ids) == 1000
    assert max(ids) < new_manifest_id(now + timedelta(seconds=1))


def test_a_manifest_document_reads_back(world: World) -> None:
    manifest = world.manifest("ü +\n😀.json", "b.json")
    manifest = replace(manifest, files=(*manifest.files, file_of("orders/c.json", version=None)))
    write_manifest(world.s3, "control", manifest)
    assert read_manifest(world.s3, "control", queued_row(manifest), ("input",)) == manifest


def test_a_manifest_may_only_name_input_buckets(world: World) -> None:
    foreign = replace(file_of("orders/a.json"), bucket="secrets")
    with pytest.raises(InvalidDocumentError, match="names the bucket 'secrets'"):
        decode_manifest(encode_body(replace(world.manifest(), files=(foreign,))), ("input",))


@pytest.mark.parametrize("text", [b"", b"[]", b"{}", b'{"format": 1, "files": [[1]]}', b'{"format": 2}'])
def test_a_manifest_of_an_unknown_format_is_left_to_the_version_that_wrote_it(text: bytes) -> None:
    with pytest.raises(NewerDocumentError, match="deploy it again"):
        decode_manifest(text, ("input",))
