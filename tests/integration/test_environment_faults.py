"""What the system is not allowed to do, or cannot do now, is no fault of a manifest: it waits, and loses nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from lake.ledger import State

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tests.integration.conversion_world import ConversionWorld
    from transform.outcome import ConversionOutcome


def enqueue_three(world: ConversionWorld) -> list[str]:
    """Three manifests of 16 files, each of which has a row and a rejected line."""
    return [
        world.enqueue([world.put(f"orders/{name}{number}.json", b'{"a":1}\nbroken\n') for number in range(16)])
        for name in "abc"
    ]


def check_nothing_was_used_up(world: ConversionWorld, manifests: list[str], outcomes: list[ConversionOutcome]) -> None:
    assert [(outcome.manifest, outcome.state) for outcome in outcomes] == [(item, "WAITING") for item in manifests]
    for manifest in manifests:
        row = world.row(manifest)
        assert (row.state, row.tries, row.exclusions) == (State.QUEUED, 0, None)
    assert world.lake() == []
    assert world.unfinished_uploads() == []


def check_everything_is_published(world: ConversionWorld, outcomes: list[ConversionOutcome], files: int) -> None:
    assert {outcome.state for outcome in outcomes} == {"DONE"}
    assert world.lake() == [{"a": "1"}] * files
    assert [record["kind"] for record in world.quarantine()] == ["line"] * files


@pytest.mark.parametrize("kind", ["lake", "quarantine", "input"])
def test_a_refused_bucket_uses_up_no_attempt(world: ConversionWorld, spark: SparkSession, kind: str) -> None:
    # Given three manifests, and a bucket that refuses what their tasks need
    world.configure("batch", max_attempts=1)
    manifests = enqueue_three(world)
    bucket = getattr(world.services.resources, f"{kind}_bucket")
    action = "s3:GetObject*" if kind == "input" else "s3:PutObject"
    world.deny(bucket, action)

    # When
    outcomes = world.convert(manifests, spark)

    # Then nothing has changed, and the row names the permission
    check_nothing_was_used_up(world, manifests, outcomes)
    assert all(action.removesuffix("*") in str(world.row(manifest).reason) for manifest in manifests)

    # When it is granted, the next run converts everything
    world.allow(bucket)
    check_everything_is_published(world, world.convert(manifests, spark, "run-2"), 48)
