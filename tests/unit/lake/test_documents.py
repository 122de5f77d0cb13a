"""Keys, documents, partitions, resource names and shards: valid values are read back, invalid ones rejected."""

import io
from collections import Counter
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from typing import Any
from unittest.mock import Mock

import pytest
from botocore.exceptions import IncompleteReadError, ReadTimeoutError
from botocore.response import StreamingBody

from lake import documents, layout
from lake.documents import MAX_BODY_SECONDS, encode_body, find_document, get_document, read_uri
from lake.errors import InvalidDocumentError, InvalidInputError
from lake.layout import inbox, list_objects, manifest_key, manifest_of_pointer, pointer_key
from lake.ledger.arrivals import arrival_key
from lake.manifest import Lane, Manifest, Partition, decode_manifest, new_manifest_id
from lake.manifest_documents import read_exclusions, read_manifest, write_exclusions, write_manifest
from lake.resource_names import ResourceNames
from lake.shards import Shards
from tests.model.fake_s3 import FakeS3, after_empty_pages
from tests.unit.lake.world import MORNING, PARTITION, RESOURCES, World, file_of

MANIFEST = "20261120T093000" + "0" * 20


def test_keys_have_their_documented_form() -> None:
    prefix = "orders/date=2026-11-20/hour=09/"
    assert layout.partition_prefix(PARTITION) == prefix
    assert layout.lake_key(PARTITION, MANIFEST, 2, 7) == f"{prefix}{MANIFEST}-g2-00007.parquet"
    assert layout.quarantine_key(PARTITION, MANIFEST, 2, 7) == f"{prefix}{MANIFEST}-g2-00007.jsonl"
    assert layout.pointer_key(MANIFEST, "n", urgent=False) == f"inbox/{MANIFEST}-n.json"
    assert layout.pointer_key(MANIFEST, "n", urgent=True) == f"inbox/urgent-{MANIFEST}-n.json"
    assert layout.run_key("overnight", "5f", 12) == "plans/overnight/5f/runs/00012.json"


def test_a_lake_key_names_its_manifest_and_generation() -> None:
    assert layout.parse_generation(layout.lake_key(PARTITION, MANIFEST, 12, 7)) == (MANIFEST, 12)
    assert layout.parse_generation(layout.quarantine_key(PARTITION, MANIFEST, 1, 0)) == (MANIFEST, 1)


@pytest.mark.parametrize("key", ["", "orders/x.parquet", "orders/-g1-0.parquet", "a-gx-0.parquet", "a-g1"])
def test_a_foreign_key_names_none(key: str) -> None:
    assert layout.parse_generation(key) is None


def test_a_partition_is_a_utc_hour_and_reads_back() -> None:
    berlin = timezone(timedelta(hours=1))
    partition = Partition.of("orders", datetime(2026, 1, 1, 0, 30, tzinfo=berlin))
    assert str(partition) == "orders#2025-12-31T23"
    assert Partition.parse(str(partition)) == partition


def test_a_listing_continues_after_pages_without_a_key() -> None:
    # Given keys on three pages, each with deleted keys before them
    s3 = FakeS3(MORNING)
    s3.create_bucket(Bucket="control")
    keys = [f"intents/{number}.json" for number in range(3 * s3.PAGE_SIZE)]
    for key in keys:
        s3.put_object(Bucket="control", Key=key, Body=b"")
    s3.list_objects_v2 = after_empty_pages(s3.list_objects_v2)  # type: ignore[method-assign]
    # When, Then
    found = list_objects(s3, "control", "intents/", keys[0])  # type: ignore[arg-type]
    assert [item["Key"] for item in found] == keys[1:]


def test_an_arrival_key_is_short_and_unique() -> None:
    long = arrival_key("input", "x" * 1024, "v1")
    assert len(long.pk) < 100
    assert arrival_key("a", "b/c", "v1") != arrival_key("a/b", "c", "v1")


def test_resource_names_read_back_what_they_wrote() -> None:
    assert ResourceNames.read(RESOURCES.to_environment() | {"PATH": "/bin"}) == RESOURCES
    arguments = {key.removeprefix("--"): value for key, value in RESOURCES.to_arguments().items()}
    assert ResourceNames.read(arguments) == RESOURCES


def test_the_error_names_the_missing_resource() -> None:
    with pytest.raises(InvalidInputError, match="argument ledger_table is missing"):
        ResourceNames.read(RESOURCES.to_environment() | {"LEDGER_TABLE": ""})


@pytest.mark.parametrize(
    ("jobs", "manifest", "shard"),
    [
        (1, "20261120T093000Z-1", "1"),
        # The numbers are fixed: another version of Python, or of the product, finds the same.
        (3, "20261120T093000Z-1", "3"),
        (3, "20261120T093000Z-3", "2"),
    ],
)
def test_the_shard_of_a_manifest(jobs: int, manifest: str, shard: str) -> None:
    assert Shards(jobs).of(manifest) == shard
    assert shard in Shards(jobs).names


def test_manifests_are_spread_evenly() -> None:
    # Given the ids of a morning
    shards = Shards(4)
    # When, Then
    counts = Counter(shards.of(f"20261120T0930{number:04d}") for number in range(4000))
    assert counts.keys() == set(shards.names)
    assert min(counts.values()) > 900


@pytest.mark.parametrize("shard", ["1", "2", "20"])
@pytest.mark.parametrize("urgent", [False, True])
def test_a_pointer_is_in_the_inbox_of_its_shard(shard: str, urgent: bool) -> None:
    key = pointer_key("20261120T093000Z-1", "n", urgent=urgent, shard=shard)
    assert key.startswith(inbox(shard))
    assert manifest_of_pointer(key) == "20261120T093000Z-1"
    # No listing of one inbox has pointers of another inbox
    assert sum(key.startswith(inbox(other)) for other in ("1", "2", "20")) == 1


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


class TricklingBody:
    """``quick`` bytes at once, then one byte every 5 seconds; a read waits until it has all requested bytes."""

    def __init__(self, quick: int, size: int) -> None:
        self.seconds, self.closed = 0.0, False
        self._quick, self._left = quick, size

    def read(self, size: int | None = None) -> bytes:
        size = self._left if size is None else min(size, self._left)
        self.seconds += 5 * max(0, size - self._quick)
        self._quick, self._left = max(0, self._quick - size), self._left - size
        return b"x" * size

    def close(self) -> None:
        self.closed = True


@pytest.mark.parametrize(("quick", "limit"), [(0, 2.1 * MAX_BODY_SECONDS), (3000, 10 * MAX_BODY_SECONDS)])
@pytest.mark.parametrize(
    "read",
    [
        lambda s3: get_document(s3, "control", "a"),
        lambda s3: find_document(s3, "control", "a"),
        lambda s3: read_uri(s3, "s3://control/a"),
    ],
)
def test_a_document_that_trickles_ends_its_request(
    monkeypatch: pytest.MonkeyPatch, quick: int, limit: float, read: Any
) -> None:
    # Given a document that sends a byte every 5 seconds, from the beginning or from its middle on
    raw: Any = TricklingBody(quick, 100_000)
    monkeypatch.setattr(documents, "time", Mock(**{"monotonic.side_effect": lambda: raw.seconds}))
    s3 = Mock(**{"get_object.return_value": {"Body": StreamingBody(raw, 100_000)}}, exceptions=Mock(NoSuchKey=KeyError))
    # When, Then
    with pytest.raises(ReadTimeoutError):
        read(s3)
    assert raw.seconds < limit
    assert raw.closed


def test_a_document_is_requested_again_after_a_lost_connection() -> None:
    # Given an answer that is cut off after its header, which the clients do not repeat
    answers = [{"Body": StreamingBody(io.BytesIO(body), 5)} for body in (b"wh", b"whole")]
    s3 = Mock(**{"get_object.side_effect": answers})
    # When, Then
    assert read_uri(s3, "s3://control/a") == b"whole"
    # And an answer that is always cut off is an error
    s3.get_object.side_effect = lambda **_: {"Body": StreamingBody(io.BytesIO(b"wh"), 5)}
    with pytest.raises(IncompleteReadError):
        read_uri(s3, "s3://control/a")


def test_manifest_ids_are_fresh_and_sort_by_time() -> None:
    ids = {new_manifest_id(MORNING) for _ in range(1000)}
    assert len(ids) == 1000
    assert max(ids) < new_manifest_id(MORNING + timedelta(seconds=1))


def test_a_manifest_document_reads_back(world: World) -> None:
    manifest = world.manifest("ü +\n😀.json", "b.json")
    manifest = replace(manifest, files=(*manifest.files, file_of("orders/c.json", version=None)))
    row = write_manifest(world.s3, "control", manifest)
    assert read_manifest(world.s3, "control", row, ("input",)) == manifest


@pytest.mark.parametrize("change", [b" ", b"}"])
def test_a_changed_document_is_refused(world: World, change: bytes) -> None:
    # Given a QUEUED manifest with a changed document, even one with equal content
    manifest = world.manifest("a.json", "b.json")
    world.enqueued(manifest)
    body = encode_body(manifest) + change
    world.raw_s3.put_object(Bucket="control", Key=manifest_key(manifest.id), Body=body)
    # When it is read, then it is rejected, and the message states what to do
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


def test_a_list_of_excluded_files_that_was_truncated_in_transit_is_not_damaged(world: World) -> None:
    # Given a proxy that cuts a body short, with a matching header
    row, manifest = world.queued("a"), world.manifest()
    key = write_exclusions(world.raw_s3, "control", row, {file_of("orders/a.json"): "it was deleted"})
    cut = Mock(wraps=world.raw_s3, **{"get_object.side_effect": lambda **_: {"Body": io.BytesIO(b"[")}})
    # When, Then neither read reports a damaged document
    for read in (lambda: read_exclusions(cut, "control", key, manifest), lambda: find_document(cut, "control", key)):
        with pytest.raises(IncompleteReadError):
            read()
