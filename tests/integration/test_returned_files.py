"""Buckets without versions: a file that was gone when it was read is put again, and its rows are published once."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from lake.ledger import State
from lake.manifest import Lane
from lake.time import iso_utc
from router.ownership import ArrivalOutcome
from router.route.handler import route_arrivals
from router.services import Services
from router.sweep.handler import sweep

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from lake.manifest import ObjectVersion
    from tests.integration.conversion_world import ConversionWorld


def body_of(name: str) -> bytes:
    return f'{{"file":"{name}"}}\n'.encode()


def put(world: ConversionWorld, name: str) -> ObjectVersion:
    """Put a file; its event is of the world's time."""
    return replace(world.put(f"orders/{name}.json", body_of(name)), arrived_at=iso_utc(world.clock()))


def delete(world: ConversionWorld, file: ObjectVersion) -> None:
    world.services.s3.delete_object(Bucket=file.bucket, Key=file.key)


def router(world: ConversionWorld) -> Services:
    services: Any = world.services
    settings = replace(services.settings, peak=replace(services.settings.peak, hours=()))
    return Services(settings, services.resources, services.ledger, services.s3, None, world.clock)  # type: ignore[arg-type]


def outcomes(world: ConversionWorld, *files: ObjectVersion) -> list[ArrivalOutcome]:
    ownership = route_arrivals(router(world), files)
    return list(ownership.outcomes.values())


def convert_queued(world: ConversionWorld, spark: SparkSession) -> list[str]:
    """Convert all waiting manifests; their ids."""
    waiting = [row.id for row in world.services.ledger.manifests.open(Lane.BATCH, State.QUEUED)]
    world.convert(waiting, spark)
    return waiting


def lake_files(world: ConversionWorld) -> list[str]:
    """The file of each row in the lake, sorted."""
    return sorted(str(row["file"]) for row in world.lake())


@pytest.fixture
def returned(unversioned_world: ConversionWorld, spark: SparkSession) -> tuple[ConversionWorld, str, ObjectVersion]:
    """A world, a DONE manifest that could not read one of its two files, and this file, put again an hour later."""
    world = unversioned_world
    files = [put(world, name) for name in "ab"]
    assert outcomes(world, *files) == [ArrivalOutcome.OWNED] * 2
    delete(world, files[1])
    (manifest,) = convert_queued(world, spark)
    assert lake_files(world) == ["a"]
    [record] = world.quarantine()
    assert "deleted" in record["reason"]
    world.clock.advance(hours=1)
    return world, manifest, put(world, "b")


def test_a_file_that_comes_back_is_converted_once(
    returned: tuple[ConversionWorld, str, ObjectVersion], spark: SparkSession
) -> None:
    world, _, file = returned
    # When its event comes twice, before and after the conversion
    assert outcomes(world, file) == [ArrivalOutcome.OWNED]
    assert outcomes(world, file) == [ArrivalOutcome.DUPLICATE]
    convert_queued(world, spark)
    assert outcomes(world, file) == [ArrivalOutcome.DUPLICATE]
    # Then each file is in the lake once, in the hour of its first arrival
    assert lake_files(world) == ["a", "b"]


def test_reprocessing_the_manifest_that_relinquished_it_does_not_publish_it_twice(
    returned: tuple[ConversionWorld, str, ObjectVersion], spark: SparkSession
) -> None:
    # Given a file that came back and was converted by another manifest
    world, manifest, file = returned
    assert outcomes(world, file) == [ArrivalOutcome.OWNED]
    convert_queued(world, spark)
    # When the first manifest is converted again, and can read the file
    assert world.services.ledger.manifests.force(world.row(manifest), world.clock())
    convert_queued(world, spark)
    world.clock.advance(hours=2)
    sweep(router(world))
    # Then the rows of the file are in the lake once
    assert world.row(manifest).state == State.DONE
    assert lake_files(world) == ["a", "b"]


def test_reprocessing_first_takes_the_file_that_came_back(
    returned: tuple[ConversionWorld, str, ObjectVersion], spark: SparkSession
) -> None:
    # Given a manifest that is queued again before the file's event comes
    world, manifest, file = returned
    assert world.services.ledger.manifests.force(world.row(manifest), world.clock())
    # When the event comes
    assert outcomes(world, file) == [ArrivalOutcome.DUPLICATE]
    convert_queued(world, spark)
    world.clock.advance(hours=2)
    sweep(router(world))
    # Then the new generation has it, once
    assert lake_files(world) == ["a", "b"]


def test_a_file_that_comes_back_during_the_conversion_is_taken_up_after_it(
    unversioned_world: ConversionWorld, spark: SparkSession
) -> None:
    # Given a claimed manifest, and a file that may have been gone when it was read
    world = unversioned_world
    files = [put(world, name) for name in "ab"]
    outcomes(world, *files)
    (waiting,) = world.services.ledger.manifests.open(Lane.BATCH, State.QUEUED)
    delete(world, files[1])
    manifests = world.services.ledger.manifests
    claim = manifests.claim(world.row(waiting.id), "run", world.clock(), timedelta(minutes=10))
    assert claim is not None
    world.clock.advance(minutes=1)
    later = replace(files[1], arrived_at=iso_utc(world.clock()))
    # When it is put again meanwhile: its event is acknowledged, and its intent is kept
    assert outcomes(world, later) == [ArrivalOutcome.POSTPONED]
    world.clock.advance(minutes=30)
    manifests.release(world.row(waiting.id), "its run ended", world.clock())
    convert_queued(world, spark)
    put(world, "b")
    assert lake_files(world) == ["a"]
    # Then the next sweep takes it, and the sweep after that finds nothing more to resume
    assert sweep(router(world))["resumed"] == 1
    convert_queued(world, spark)
    assert lake_files(world) == ["a", "b"]
    world.clock.advance(minutes=30)
    assert sweep(router(world))["resumed"] == 0
    keys = world.keys(world.services.resources.control_bucket)
    assert [key for key in keys if key.startswith("intents/")] == []


def test_the_version_null_is_read_after_the_bucket_got_versions(
    unversioned_world: ConversionWorld, spark: SparkSession
) -> None:
    # Given a file that was put before the bucket got versions, then overwritten and deleted
    world = unversioned_world
    file = put(world, "a")
    assert outcomes(world, file) == [ArrivalOutcome.OWNED]
    bucket = file.bucket
    world.services.s3.put_bucket_versioning(Bucket=bucket, VersioningConfiguration={"Status": "Enabled"})
    world.services.s3.put_object(Bucket=bucket, Key=file.key, Body=body_of("newer"))
    delete(world, file)
    # When it is converted
    convert_queued(world, spark)
    # Then its own bytes are in the lake
    assert lake_files(world) == ["a"]
    assert world.quarantine() == []
