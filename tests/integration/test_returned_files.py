"""Buckets without versions, and those that got versions later: which bytes an arrival is."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from lake.ledger import State
from lake.manifest import Lane
from lake.time import iso_utc
from router.collect.divide import divide_selected
from router.ownership import ArrivalOutcome
from router.requests.selection import Selection
from router.route.handler import route_arrivals
from router.services import Services

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
    divide_selected(router(world), Selection())
    waiting = [row.id for row in world.services.ledger.manifests.open(Lane.BATCH, State.QUEUED)]
    world.convert(waiting, spark)
    return waiting


def lake_files(world: ConversionWorld) -> list[str]:
    """The file of each row in the lake, sorted."""
    return sorted(str(row["file"]) for row in world.lake())


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
