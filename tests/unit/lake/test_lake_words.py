"""Layout, partitions, manifest documents, places and arrival keys: what is written is read back, the rest refused."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone

import pytest

from lake import layout
from lake.errors import InvalidDocumentError, InvalidInputError
from lake.ledger.arrivals import arrival_key
from lake.manifest import from_json, new_manifest_id, read_manifest, to_json, write_manifest
from lake.partition import Partition
from lake.resource_names import ResourceNames
from tests.unit.lake.world import PARTITION, PLACES, World, file_of

MANIFEST = "20261120T093000" + "0" * 20


def test_keys_are_what_the_design_says() -> None:
    prefix = "orders/date=2026-11-20/hour=09/"
    assert layout.partition_prefix(PARTITION) == prefix
    assert layout.lake_key(PARTITION, MANIFEST, 2, 7) == f"{prefix}{MANIFEST}-g2-00007.parquet"
    assert layout.quarantine_key(PARTITION, MANIFEST, 2, 7) == f"{prefix}{MANIFEST}-g2-00007.jsonl"
    assert layout.pointer_key(MANIFEST, "n") == f"inbox/{MANIFEST}-n.json"
    assert layout.run_key("night", 12) == "plans/night/runs/00012.json"


def test_a_lake_key_says_whose_it_is() -> None:
    assert layout.parse_generation(layout.lake_key(PARTITION, MANIFEST, 12, 7)) == (MANIFEST, 12)
    assert layout.parse_generation(layout.quarantine_key(PARTITION, MANIFEST, 1, 0)) == (MANIFEST, 1)


@pytest.mark.parametrize("key", ["", "orders/x.parquet", "orders/-g1-0.parquet", "a-gx-0.parquet", "a-g1"])
def test_a_foreign_key_says_nothing(key: str) -> None:
    assert layout.parse_generation(key) is None


def test_a_partition_is_a_utc_hour_and_reads_back() -> None:
    berlin = timezone(timedelta(hours=1))
    partition = Partition.of("orders", datetime(2026, 1, 1, 0, 30, tzinfo=berlin))
    assert str(partition) == "orders#2025-12-31T23"
    assert Partition.parse(str(partition)) == partition


def test_manifest_ids_are_fresh_and_sort_by_time() -> None:
    now = datetime(2026, 11, 20, 9, 30, tzinfo=UTC)
    ids = {new_manifest_id(now) for _ in range(1000)}
    assert len(ids) == 1000
    assert max(ids) < new_manifest_id(now + timedelta(seconds=1))


def test_a_manifest_document_reads_back(world: World) -> None:
    manifest = world.manifest("ü +\n😀.json", "b.json")
    manifest = replace(manifest, files=(*manifest.files, file_of("orders/c.json", version=None)))
    write_manifest(world.s3, "control", manifest)
    assert read_manifest(world.s3, "control", manifest.id, ("input",)) == manifest


def test_a_manifest_may_only_name_input_buckets(world: World) -> None:
    foreign = replace(file_of("orders/a.json"), bucket="secrets")
    with pytest.raises(InvalidDocumentError, match="names the bucket 'secrets'"):
        from_json(to_json(replace(world.manifest(), files=(foreign,))), ("input",))


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"format": 2}', '{"format": 1, "files": [[1]]}'])
def test_what_is_no_manifest_is_refused(text: str) -> None:
    with pytest.raises(InvalidDocumentError):
        from_json(text, ("input",))


def test_a_document_under_another_name_is_refused(world: World) -> None:
    manifest = world.manifest("a.json")
    world.s3.put_object(Bucket="control", Key=layout.manifest_key(MANIFEST), Body=to_json(manifest).encode())
    with pytest.raises(InvalidDocumentError, match="it was overwritten"):
        read_manifest(world.s3, "control", MANIFEST, ("input",))


def test_places_travel_both_ways() -> None:
    assert ResourceNames.from_environment(PLACES.to_environment() | {"PATH": "/bin"}) == PLACES
    arguments = {key.removeprefix("--"): value for key, value in PLACES.to_arguments().items()}
    assert ResourceNames.from_arguments(arguments) == PLACES


def test_a_missing_place_is_named() -> None:
    with pytest.raises(InvalidInputError, match="environment variable LEDGER_TABLE is missing"):
        ResourceNames.from_environment(PLACES.to_environment() | {"LEDGER_TABLE": ""})


def test_an_arrival_key_fits_and_tells_keys_apart() -> None:
    long = arrival_key("input", "x" * 1024, "v1")
    assert len(long.pk) < 100
    assert arrival_key("a", "b/c", "v1") != arrival_key("a/b", "c", "v1")
