"""Documents on S3: what is written is read back; anything else is refused."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from lake.documents import encode_body, find_document, read_uri
from lake.errors import InvalidDocumentError, InvalidInputError
from lake.layout import manifest_key
from lake.ledger.manifest_row import queued_row
from lake.manifest import Lane, Manifest, decode_manifest, new_manifest_id
from lake.manifest_documents import read_exclusions, read_manifest, write_exclusions, write_manifest
from tests.unit.lake.world import PARTITION, World, file_of


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


@pytest.mark.parametrize("change", [b" ", b"}"])
def test_a_changed_document_is_refused(world: World, change: bytes) -> None:
    # Given a QUEUED manifest whose document was changed, even if it says the same
    manifest = world.manifest("a.json", "b.json")
    world.ledger.manifests.enqueue(manifest)
    body = encode_body(manifest) + change
    world.raw_s3.put_object(Bucket="control", Key=manifest_key(manifest.id), Body=body)
    # When it is read, then it is refused, and the message says what to do
    with pytest.raises(InvalidDocumentError, match=rf"{manifest.id}.json.*was changed.*restore"):
        read_manifest(world.s3, "control", world.row(manifest.id), ("input",))


def test_a_manifest_may_only_name_input_buckets(world: World) -> None:
    foreign = replace(file_of("orders/a.json"), bucket="secrets")
    with pytest.raises(InvalidDocumentError, match="names the bucket 'secrets'"):
        decode_manifest(encode_body(replace(world.manifest(), files=(foreign,))), ("input",))


def test_another_version_of_an_excluded_file_is_not_excluded(world: World) -> None:
    # Given two versions of a key in one manifest
    first, second = (file_of("orders/a.json", version=version) for version in ("v1", "v2"))
    row = world.queued("a")
    manifest = Manifest(row.id, Lane.BATCH, PARTITION, row.created_at, (first, second))
    # When one of them cannot be read / Then the next attempt reads the other one
    key = write_exclusions(world.raw_s3, "control", row, {second: "it was deleted"})
    assert read_exclusions(world.raw_s3, "control", key, manifest) == {second: "it was deleted"}
