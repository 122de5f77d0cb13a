"""A file that came back in a bucket without versions is in two manifests, and its rows are published by one of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from router.sweep.handler import sweep
from tests.integration.test_returned_files import convert_queued, outcomes, returned, router
from tests.integration.verified_hour import verify_noon
from verify.report import HourOutcome

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from lake.manifest import ObjectVersion
    from tests.integration.conversion_world import ConversionWorld

__all__ = ["returned"]


def test_a_file_that_came_back_is_proven(
    returned: tuple[ConversionWorld, str, ObjectVersion], spark: SparkSession
) -> None:
    # Given a file that one manifest could not read and relinquished, and that another one has published
    world, manifest, file = returned
    outcomes(world, file)
    convert_queued(world, spark)
    assert world.row(manifest).relinquished is not None

    # When the hour is verified / Then it is published once
    report = verify_noon(world)
    assert report.outcome == HourOutcome.PROVEN, [*map(str, report.differences), *report.unproven]
    assert (report.manifests, report.rows, report.whole_files) == (2, 2, 1)

    # And as well after the first manifest was converted again
    assert world.services.ledger.manifests.force(world.row(manifest), world.clock())
    convert_queued(world, spark)
    world.clock.advance(hours=2)
    sweep(router(world))
    report = verify_noon(world)
    assert report.outcome == HourOutcome.PROVEN, [*map(str, report.differences), *report.unproven]


def test_a_file_that_two_manifests_have_without_relinquishing_it_is_found(
    returned: tuple[ConversionWorld, str, ObjectVersion], spark: SparkSession
) -> None:
    # Given a file that a second manifest has published, while the first one may still read it
    world, manifest, file = returned
    world.convert([world.enqueue([file])], spark)
    assert world.row(manifest).relinquished is None
    # When the hour is verified / Then the file in both is found
    (difference,) = verify_noon(world).differences
    assert difference.uri == file.uri
    assert "was published twice" in difference.problem
