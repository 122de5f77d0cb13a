"""One manifest of one small file: how the tests of the exactly-once protocol convert it and judge what is published."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from lake.ledger import State
from transform.convert import convert

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tests.integration.conversion_world import ConversionWorld
    from tests.integration.faults import Steps
    from transform.outcome import ConversionOutcome

BODY = b'{"a":1}\nbroken\n{"a":2}\n'
ROWS = [{"a": "1"}, {"a": "2"}]


def enqueue(world: ConversionWorld) -> str:
    return world.enqueue([world.put("orders/a.json", BODY)])


def convert_with(
    world: ConversionWorld, steps: Steps, spark: SparkSession, manifest: str, run: str = "run-1"
) -> list[ConversionOutcome]:
    """Convert it, with every request of the driver as a step."""
    context = world.context(spark, run)
    return convert([manifest], replace(context, services=steps.wrap(world.services)))


def check_published_once(world: ConversionWorld, manifest: str) -> None:
    assert world.row(manifest).state == State.DONE
    assert world.lake() == ROWS
    assert [record["line"] for record in world.quarantine()] == ["broken"]
    assert world.unfinished_uploads() == []
    assert world.result(manifest)["rows"] == 2
