"""Dataset rows: each dataset has partition keys of its own, and a write changes what is new and nothing else."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from lake.ledger import DatasetMeasurement, DatasetSpeed, Ledger
from tests.load.request_counts import counted_requests
from tests.unit.lake.world import RESOURCES, World

if TYPE_CHECKING:
    from collections.abc import Callable

WIDE = [f"column_{number:04}" for number in range(1000)]


MB = 1_000_000


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


def test_a_process_reads_once_that_a_dataset_is_let_in(world: World) -> None:
    world.ledger.datasets.admit("orders", 1000, ())
    another = Ledger.over(world.dynamodb, RESOURCES.ledger_table)
    with counted_requests() as counts:
        assert [another.datasets.admit("orders", 1000, ()) for _ in range(3)] == ["orders"] * 3
    assert counts == {"GetItem": 1, "write units": 0}


def test_a_measurement_does_not_write_the_columns_again(world: World) -> None:
    # Given: a dataset with many columns
    datasets = world.ledger.datasets
    datasets.register("orders")
    datasets.reserve_columns("orders", WIDE, 1000)
    # When
    ((pk, sk),) = written_keys(
        world, lambda: datasets.add_measurement("orders", DatasetMeasurement(100 * MB, 10 * MB, 1000, 40 * MB, 800))
    )
    # Then: the item of the measurement is a small one
    item = world.dynamodb.get_item(TableName=RESOURCES.ledger_table, Key={"pk": pk, "sk": sk})["Item"]
    assert len(str(item)) < 1000
    row = datasets.get("orders")
    assert row is not None
    assert (len(row.columns), row.output_ratio) == (1000, 0.1)
    assert row.measured.speed == DatasetSpeed(plain=300.0 * MB, compressed=50.0 * MB)


def measured(world: World, *conversions: DatasetMeasurement) -> DatasetSpeed:
    for conversion in conversions:
        world.ledger.datasets.add_measurement("orders", conversion)
    return world.ledger.datasets.speed("orders")


@pytest.mark.parametrize(
    ("earlier", "slow"),
    [
        # One manifest of 1 GB; 91 MB of gzip that took half an hour, and 1.47 GB that took 8 hours
        ([DatasetMeasurement(1000 * MB, 1, 17_000)], DatasetMeasurement(91 * MB, 1, 1_800_000)),
        ([DatasetMeasurement(1000 * MB, 1, 17_000)], DatasetMeasurement(1470 * MB, 1, 28_800_000)),
        # 500 GB in manifests of 3.5 GB
        ([DatasetMeasurement(3500 * MB, 1, 58_000)] * 143, DatasetMeasurement(1470 * MB, 1, 28_800_000)),
        # Files of one byte
        ([DatasetMeasurement(1000 * MB, 1, 17_000)], DatasetMeasurement(1000, 1, 1_000_000)),
    ],
)
def test_one_slow_file_does_not_change_the_speed_of_a_dataset(
    world: World, earlier: list[DatasetMeasurement], slow: DatasetMeasurement
) -> None:
    before = measured(world, *earlier)
    assert before.plain == pytest.approx(59 * MB, rel=0.03)
    # When, Then
    assert measured(world, slow) == before


def test_slow_files_that_are_the_dataset_decide_and_earlier_ones_are_forgotten(world: World) -> None:
    # Given
    assert measured(world, *[DatasetMeasurement(100 * MB, 1, 2_000)] * 50).plain == 50 * MB
    # When
    found = measured(world, *[DatasetMeasurement(100 * MB, 1, 20_000)] * 9)
    # Then, and the row does not grow
    assert found.plain == 5 * MB
    key = {"pk": "dataset#orders", "sk": "measurement"}
    assert len(str(world.dynamodb.get_item(TableName=RESOURCES.ledger_table, Key=key)["Item"])) < 1500


def test_small_manifests_are_one_sample_when_they_are_large_enough(world: World) -> None:
    # Given: 1.3 MB that took 2.6 seconds are no measurement of a dataset
    small = DatasetMeasurement(1_300_000, 1, 2600)
    assert measured(world, *[small] * 12).plain is None
    # When, Then
    assert measured(world, small).plain == MB // 2
    assert measured(world, DatasetMeasurement(1000 * MB, 1, 20_000)).plain == 50 * MB


def test_compressed_files_stand_for_plain_ones_that_were_never_measured(world: World) -> None:
    assert measured(world, DatasetMeasurement(100 * MB, 1, 10_000, 100 * MB, 10_000)) == DatasetSpeed(10 * MB, 10 * MB)


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
        datasets.add_measurement(name, DatasetMeasurement(40 * MB, 10, 1000))
    datasets.reserve_columns(names[7], ["b", "a"], 9)
    # When, Then
    assert list(datasets.names()) == names
    assert datasets.speeds() == dict.fromkeys(names[::40], DatasetSpeed(40.0 * MB, None))
    following = list(datasets.following(names[4]))
    assert [row.name for row in following] == names[5:]
    assert following[2].columns == ("a", "b")
    assert datasets.get("d500") is None
    assert datasets.get(names[1]) is not None
