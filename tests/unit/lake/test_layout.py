"""Keys, partitions, arrival keys, resource names and shards: what is written is read back, the rest is refused."""

from collections import Counter
from datetime import datetime, timedelta, timezone

import pytest

from lake import layout
from lake.errors import InvalidInputError
from lake.layout import inbox, list_objects, manifest_of_pointer, pointer_key
from lake.ledger.arrivals import arrival_key
from lake.manifest import Partition
from lake.resource_names import ResourceNames
from lake.shards import Shards
from tests.model.fake_s3 import FakeS3, after_empty_pages
from tests.unit.lake.world import MORNING, PARTITION, RESOURCES

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


def test_a_listing_goes_on_after_pages_without_a_key() -> None:
    # Given keys on three pages, and before each of them others that were deleted
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
    # No listing of one inbox has the pointers of another one
    assert sum(key.startswith(inbox(other)) for other in ("1", "2", "20")) == 1
