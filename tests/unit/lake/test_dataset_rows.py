"""Dataset rows: each dataset has partition keys of its own, and a write changes what is new and nothing else."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from lake.ledger import DatasetMeasurement, DatasetSpeed
from tests.unit.lake.world import RESOURCES, World

if TYPE_CHECKING:
    from collections.abc import Callable

WIDE = [f"column_{number:04}" for number in range(1000)]


def written_keys(world: World, write: Callable[[], object]) -> list[tuple[str, str]]:
    """Primary keys that the writes of ``write`` name."""
    keys: list[tuple[str, str]] = []
    table = world.ledger.datasets._table
    send = table._write

    def record(operation: str, request: dict[str, Any]) -> None:
        key = request.get("Key") or request["Item"]
        keys.append((key["pk"], key["sk"]))
        send(operation, request)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(table, "_write", record)
        write()
    return keys


def test_a_registered_dataset_is_read_and_not_written(world: World) -> None:
    world.ledger.datasets.register("orders")
    assert written_keys(world, lambda: world.ledger.datasets.register("orders")) == []
    assert list(world.ledger.datasets.names()) == ["orders"]


def test_a_measurement_does_not_write_the_columns_again(world: World) -> None:
    # Given: a dataset with many columns
    datasets = world.ledger.datasets
    datasets.register("orders")
    datasets.reserve_columns("orders", WIDE, 1000)
    # When
    ((pk, sk),) = written_keys(
        world, lambda: datasets.add_measurement("orders", DatasetMeasurement(100, 10, 1000, 40, 800))
    )
    # Then: the item of the measurement is a small one
    item = world.dynamodb.get_item(TableName=RESOURCES.ledger_table, Key={"pk": pk, "sk": sk})["Item"]
    assert len(str(item)) < 1000
    row = datasets.get("orders")
    assert row is not None
    assert (len(row.columns), row.output_ratio) == (1000, 0.1)
    assert row.measured.speed == DatasetSpeed(plain=300.0, compressed=50.0)


def test_measurements_of_a_version_without_compressed_names_count_as_plain(world: World) -> None:
    # Given
    item = {"pk": "dataset#orders", "sk": "measurement", "input_bytes": 100, "output_bytes": 1}
    world.dynamodb.put_item(TableName=RESOURCES.ledger_table, Item={**item, "task_milliseconds": 1000})
    # When the next conversion is of a compressed file
    world.ledger.datasets.add_measurement("orders", DatasetMeasurement(10, 1, 500, 10, 500))
    # Then
    row = world.ledger.datasets.get("orders")
    assert row is not None
    assert row.measured.speed == DatasetSpeed(plain=100.0, compressed=20.0)


def test_what_manifests_write_of_two_datasets_shares_no_partition_key(world: World) -> None:
    datasets = world.ledger.datasets
    partitions = {}
    for name in ("orders", "clicks"):
        datasets.register(name)
        keys = written_keys(world, lambda name=name: datasets.reserve_columns(name, ["a"], 9))  # type: ignore[misc]
        keys += written_keys(world, lambda name=name: datasets.add_measurement(name, DatasetMeasurement(1, 1, 1)))  # type: ignore[misc]
        partitions[name] = {pk for pk, _ in keys}
    assert partitions["orders"].isdisjoint(partitions["clicks"])


def test_all_datasets_are_found_by_name(world: World) -> None:
    # Given: more than one read takes, of which some were converted
    datasets = world.ledger.datasets
    names = [f"d{number:03}" for number in range(120)]
    for name in names:
        datasets.register(name)
    for name in names[::40]:
        datasets.add_measurement(name, DatasetMeasurement(4000, 10, 1000))
    datasets.reserve_columns(names[7], ["b", "a"], 9)
    # When, Then
    assert list(datasets.names()) == names
    assert datasets.speeds() == dict.fromkeys(names[::40], DatasetSpeed(4000.0, None))
    following = list(datasets.following(names[4]))
    assert [row.name for row in following] == names[5:]
    assert following[2].columns == ("a", "b")
    assert datasets.get("d500") is None
    assert datasets.get(names[1]) is not None
