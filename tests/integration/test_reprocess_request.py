"""A person's reprocess, from the request to the rows: each cause is mended, and every row is in the lake once."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from lake.ledger import ArrivalRow
from lake.manifest import Lane, Partition
from router.requests.reprocess import reprocess
from router.services import Services
from router.sweep.leftovers import delete_replaced
from router.sweep.repair import Repair
from router.telemetry import metrics
from tests.integration.conversion_world import NOON
from tests.integration.one_manifest import BODY, ROWS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from lake.manifest import ObjectVersion
    from tests.integration.conversion_world import ConversionWorld

GOOD = b'{"a":"good"}\n'


@pytest.fixture(autouse=True)
def _metrics(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metrics, "namespace", "hybrid-router")
    metrics.clear_metrics()


def router(world: ConversionWorld) -> Services:
    services, unused = world.services, None
    glue: Any = unused
    return Services(services.settings, services.resources, services.ledger, services.s3, glue, world.clock)


def ask(world: ConversionWorld, **fields: Any) -> dict[str, Any]:
    return reprocess({"request": "request-1", **fields}, router(world))


def record(world: ConversionWorld, file: ObjectVersion, manifest: str) -> None:
    """The arrival row of a file, as route writes it."""
    row = ArrivalRow(file, manifest, Partition.of("orders", NOON), Lane.BATCH, "test", NOON.isoformat())
    world.services.ledger.arrivals.put(row)


def sweep_after_the_grace_period(world: ConversionWorld) -> None:
    world.clock.advance(hours=3)
    delete_replaced(Repair(router(world), world.clock() + timedelta(hours=1)))


def test_a_restored_file_of_a_done_manifest_is_converted_and_no_row_twice(
    unversioned_world: ConversionWorld, spark: SparkSession
) -> None:
    # Given: a DONE manifest whose second file was gone when it was read
    world = unversioned_world
    good, lost = world.put("orders/good.json", GOOD), world.put("orders/lost.json", BODY)
    manifest = world.enqueue([good, lost])
    record(world, lost, manifest)
    world.services.s3.delete_object(Bucket=lost.bucket, Key=lost.key)
    world.convert([manifest], spark)
    assert world.lake() == [{"a": "good"}]
    # When: it is put again and reprocessed
    world.put("orders/lost.json", BODY)
    assert ask(world, files=[lost.uri])["queued"] == 1
    assert world.lake() == [{"a": "good"}]
    world.convert([manifest], spark)
    # Then: readers see both generations for the grace period, and after it the new one only
    sweep_after_the_grace_period(world)
    assert world.lake() == [{"a": "good"}, *ROWS]
    assert [entry.get("kind") for entry in world.quarantine()] == ["line"]
    assert world.result(manifest, 2)["failed_files"] == 0


def test_a_published_row_is_not_lost_when_its_file_is_gone(world: ConversionWorld, spark: SparkSession) -> None:
    # Given: a converted manifest, one of whose files has been deleted since
    kept, deleted = world.put("orders/kept.json", GOOD), world.put("orders/deleted.json", BODY)
    manifest = world.enqueue([kept, deleted])
    world.convert([manifest], spark)
    before = world.lake()
    world.services.s3.delete_object(Bucket=deleted.bucket, Key=deleted.key, VersionId=str(deleted.version_id))
    # When: a person has all of it converted again
    assert ask(world, manifests=[manifest], only="all")["queued"] == 1
    (outcome,) = world.convert([manifest], spark)
    # Then: it is DONE, with what it has published
    assert outcome.state == "DONE"
    assert world.row(manifest).published.generation == 1  # type: ignore[union-attr]
    reason = str(world.row(manifest).reason)
    assert reason.startswith("1 file of its published generation 1 can no longer be read (first: s3://")
    assert "orders/deleted.json: this version was deleted after it arrived)" in reason
    sweep_after_the_grace_period(world)
    assert world.lake() == before
    assert world.unfinished_uploads() == []
