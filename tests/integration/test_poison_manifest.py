"""A file whose task always dies: its manifest is divided until the file is alone, and the other files are published."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.integration.faults import crash_the_reader

if TYPE_CHECKING:
    import pytest
    from pyspark.sql import SparkSession

    from tests.integration.conversion_world import ConversionWorld


def test_a_poisonous_file_is_isolated_and_the_others_are_published(
    world: ConversionWorld, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Given a manifest with one file whose task always dies, and another manifest
    world.configure("batch", max_attempts=1)
    crash_the_reader(monkeypatch, "orders/1.json")
    bodies = [b'{"a":1}\n', b'{"a":"poison"}\n', b'{"a":2}\n']
    files = [world.put(f"orders/{number}.json", body) for number, body in enumerate(bodies)]
    manifest = world.enqueue(files)
    good = world.enqueue([world.put("orders/i.json", b'{"a":3}\n')])

    # When
    outcomes = world.convert([manifest, good], spark)

    # Then
    assert [outcome.state for outcome in outcomes[:2]] == ["SUPERSEDED", "DONE"]
    (failed,) = [outcome for outcome in outcomes if outcome.state == "FAILED"]
    assert world.row(failed.manifest).files == 1
    assert "ZeroDivisionError: the reader has a defect" in str(failed.reason)
    assert sorted(str(row["a"]) for row in world.lake()) == ["1", "2", "3"]
