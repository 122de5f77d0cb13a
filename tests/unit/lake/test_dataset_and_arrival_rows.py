"""Dataset rows: what each write changes, how many columns have room, and which of them have a field id.

Arrival rows: a written row is read back, it has one owner at a time, and keeps nothing of the previous owner.
"""

from dataclasses import replace
from datetime import date, timedelta
from typing import Any

import pytest

from lake.errors import OwnershipError
from lake.ledger import ArrivalRow, DatasetMeasurement, DatasetSpeed, SpeedSample
from lake.ledger.arrivals import EXPIRY, arrival_key
from lake.ledger.datasets import (
    ADDED_COLUMNS,
    GROWTH,
    MAX_COLUMN_BYTES,
    MAX_NAME_BYTES,
    divide_by_room,
    field_id,
    is_full,
)
from lake.manifest import Lane
from tests.unit.lake.world import PARTITION, RESOURCES, World, file_of

WIDE = [f"column_{number:04}" for number in range(1000)]


MB = 1_000_000


def measurement_characters(world: World) -> int:
    key = {"pk": "dataset#orders", "sk": "measurement"}
    return len(str(world.dynamodb.get_item(TableName=RESOURCES.ledger_table, Key=key)["Item"]))


def test_a_measurement_does_not_write_the_columns_again(world: World) -> None:
    # Given: a dataset with many columns
    datasets = world.ledger.datasets
    datasets.reserve_columns("orders", WIDE, 1000)
    # When
    compressed = SpeedSample(40 * MB, 800)
    datasets.add_measurement("orders", DatasetMeasurement(10 * MB, SpeedSample(60 * MB, 200), compressed))
    # Then: the item of the measurement stays small
    assert measurement_characters(world) < 1000
    row = datasets.get("orders")
    assert row is not None
    assert (len(row.columns), row.measured.output_ratio) == (1000, 0.1)
    assert row.measured.speed == DatasetSpeed(plain=300.0 * MB, compressed=50.0 * MB)


def plain(size: int, milliseconds: int) -> DatasetMeasurement:
    return DatasetMeasurement(1, SpeedSample(size, milliseconds))


def measured(world: World, *conversions: DatasetMeasurement) -> DatasetSpeed:
    for conversion in conversions:
        world.ledger.datasets.add_measurement("orders", conversion)
    return world.ledger.datasets.speeds(["orders"]).get("orders", DatasetSpeed(None, None))


@pytest.mark.parametrize(
    ("earlier", "slow"),
    [
        # One manifest of 1 GB; 91 MB of gzip that took half an hour, and 1.47 GB that took 8 hours
        ([plain(1000 * MB, 17_000)], plain(91 * MB, 1_800_000)),
        ([plain(1000 * MB, 17_000)], plain(1470 * MB, 28_800_000)),
        # 500 GB in manifests of 3.5 GB
        ([plain(3500 * MB, 58_000)] * 143, plain(1470 * MB, 28_800_000)),
        # Files of one byte
        ([plain(1000 * MB, 17_000)], plain(1000, 1_000_000)),
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
    assert measured(world, *[plain(100 * MB, 2_000)] * 50).plain == 50 * MB
    # When
    found = measured(world, *[plain(100 * MB, 20_000)] * 9)
    # Then, and the row does not grow
    assert found.plain == 5 * MB
    assert measurement_characters(world) < 1500


def test_small_manifests_are_one_sample_when_they_are_large_enough(world: World) -> None:
    # Given: 1.3 MB that took 2.6 seconds are too little to measure a dataset
    small = plain(1_300_000, 2600)
    assert measured(world, *[small] * 12).plain is None
    # When, Then
    assert measured(world, small).plain == MB // 2
    assert measured(world, plain(1000 * MB, 20_000)).plain == 50 * MB


def test_compressed_files_stand_for_plain_ones_that_were_never_measured(world: World) -> None:
    compressed = DatasetMeasurement(1, SpeedSample(0, 0), SpeedSample(100 * MB, 10_000))
    assert measured(world, compressed) == DatasetSpeed(10 * MB, 10 * MB)


def test_all_datasets_are_found_by_name(world: World) -> None:
    # Given: more rows than one read takes, some of them converted
    datasets = world.ledger.datasets
    names = [f"d{number:03}" for number in range(120)]
    for name in names:
        datasets.admit({name: ""}, 0)
    for name in names[::40]:
        datasets.add_measurement(name, plain(40 * MB, 1000))
    datasets.reserve_columns(names[7], ["b", "a"], 9)
    # When, Then
    assert list(datasets.names()) == names
    assert datasets.speeds() == dict.fromkeys(names[::40], DatasetSpeed(40.0 * MB, None))
    rows = list(datasets.rows(reversed(names)))
    assert [row.name for row in rows] == names[::-1]
    assert rows[-8].columns == ("a", "b")
    assert datasets.get("d500") is None
    assert datasets.get(names[1]) is not None


OVERHEAD = 4
NEEDED = MAX_NAME_BYTES + OVERHEAD
"""Free bytes with which the longest name still fits."""
NO_LIMIT = 1_000_000


def columns_that_leave(free: int) -> list[str]:
    """Distinct names that use all bytes of the item except ``free``."""
    taken, size = MAX_COLUMN_BYTES - free, 100
    whole = taken // size - 1
    sizes = [size] * whole + [taken - whole * size]
    return [f"{number:0{stored - OVERHEAD}d}" for number, stored in enumerate(sizes)]


@pytest.mark.parametrize(
    ("columns", "limit", "full"),
    [
        (columns_that_leave(NEEDED), NO_LIMIT, False),
        (columns_that_leave(NEEDED - 1), NO_LIMIT, True),
        (["a", "b", "c"], 4, False),
        (["a", "b", "c"], 3, True),
        (["a", "b", "c"], 2, True),
    ],
    ids=["room", "no room", "below", "at the limit", "above"],
)
def test_a_dataset_is_full_when_the_longest_name_or_one_more_does_not_fit(
    columns: list[str], limit: int, full: bool
) -> None:
    assert is_full(columns, limit) == full
    assert divide_by_room(columns, ["d"], limit) == (((), ("d",)) if full else (("d",), ()))


def test_names_take_their_room_in_order_and_known_ones_none() -> None:
    columns = columns_that_leave(NEEDED + 10)
    # The first name leaves too little for the longest one, although the second would fit.
    assert divide_by_room(columns, [columns[0], "seven_b", "a", "seven_b"], NO_LIMIT) == (("seven_b",), ("a",))
    assert divide_by_room(["a"], ["b", "a", "c", "d"], 3) == (("b", "c"), ("d",))


WITH_ONE_FIELD_ID = ("c6878", "c5940")


def columns(world: World) -> tuple[str, ...]:
    row = world.ledger.datasets.get("orders")
    return () if row is None else row.columns


def test_what_fits_is_reserved_in_order_and_the_rest_is_refused(world: World) -> None:
    assert world.ledger.datasets.reserve_columns("orders", ["z", "a"], 4) == ()
    assert world.ledger.datasets.reserve_columns("orders", ["m", "a", "b", "c", "d"], 4) == ("c", "d")
    assert columns(world) == ("a", "b", "m", "z")
    assert is_full(columns(world), 4)


def test_a_repeated_reservation_writes_nothing(world: World) -> None:
    world.ledger.datasets.reserve_columns("orders", ["a", "b"], 4)
    world.faults.reset()
    assert world.ledger.datasets.reserve_columns("orders", ["b", "a"], 2) == ()
    assert world.faults.writes == []


def test_two_callers_that_race_for_the_same_room_do_not_exceed_it(world: World) -> None:
    # Given: room for three, and another caller that reserves two between the read and the write of this one
    datasets = world.ledger.datasets
    datasets.reserve_columns("orders", ["a"], 4)
    world.faults.reset()
    world.faults.pause = (1, lambda: datasets.reserve_columns("orders", ["x", "y"], 4) and None)
    # When
    refused = datasets.reserve_columns("orders", ["b", "c", "d"], 4)
    # Then
    assert refused == ("c", "d")
    assert columns(world) == ("a", "b", "x", "y")


def test_a_dataset_that_has_its_columns_gets_a_hundred_new_ones_a_day(world: World) -> None:
    # Given: a dataset whose first files have 300 columns
    datasets = world.ledger.datasets
    assert datasets.reserve_columns("orders", names("first", 300), 1000, date(2026, 11, 1)) == ()
    last_day_of_growth = date(2026, 11, 1) + GROWTH - timedelta(days=1)
    assert datasets.reserve_columns("orders", names("grown", 200), 1000, last_day_of_growth) == ()
    # When: a week later one file has 1,000 other columns
    later = date(2026, 11, 1) + GROWTH
    row = datasets.get("orders")
    assert row is not None
    assert row.column_limit(1000, later) == 600
    refused = datasets.reserve_columns("orders", names("hostile", 1000), 1000, later)
    # Then: most of them have to wait, and other names have room on the next day
    assert len(refused) == 900
    assert datasets.reserve_columns("orders", names("honest", 3), 1000, later) == names("honest", 3)
    assert datasets.reserve_columns("orders", names("honest", 3), 1000, later + timedelta(days=1)) == ()
    assert len(columns(world)) == 603
    # And committed columns always have room
    assert datasets.reserve_columns("orders", names("committed", 200), 1000) == ()


def test_the_first_of_two_columns_with_one_field_id_has_it(world: World) -> None:
    # Given
    first, second = WITH_ONE_FIELD_ID
    assert field_id(first) == field_id(second)
    assert len({*map(field_id, ADDED_COLUMNS)}) == len(ADDED_COLUMNS)
    datasets = world.ledger.datasets
    # When: they arrive one after the other
    datasets.reserve_columns("orders", [first, "a"], 10)
    datasets.reserve_columns("orders", ["b", second], 10)
    # And the first column is dropped and returns; or they arrive together
    assert datasets.drop_columns("orders", columns(world), [first])
    datasets.reserve_columns("orders", [first], 10)
    datasets.reserve_columns("clicks", WITH_ONE_FIELD_ID, 10)
    # Then
    rows = [datasets.get(name) for name in ("orders", "clicks")]
    assert [row.unnumbered for row in rows if row] == [frozenset({second})] * 2


def test_what_two_callers_drop_takes_no_column_that_came_between_them(world: World) -> None:
    # Given: another caller that has dropped as many columns as a conversion has added since this caller read them
    datasets = world.ledger.datasets
    datasets.reserve_columns("orders", ["a", "b", "c"], 10)
    read = columns(world)
    assert datasets.drop_columns("orders", read, ["c"])
    datasets.reserve_columns("orders", ["new"], 10)
    # When, Then
    assert not datasets.drop_columns("orders", read, ["b", "c"])
    assert columns(world) == ("a", "b", "new")


def names(prefix: str, number: int) -> tuple[str, ...]:
    return tuple(f"{prefix}_{position:04}" for position in range(number))


FILE = file_of("orders/a.json")
OWNED = ArrivalRow(FILE, "manifest-1", PARTITION, Lane.STREAM, "urgent", "2026-11-20T09:30:00Z")
IGNORED = ArrivalRow(FILE, None, None, None, "no rule", "2026-11-20T09:30:00Z")
ROWS = {
    "owned": OWNED,
    "owned, expires": replace(OWNED, expires_at=7),
    "without a version": replace(OWNED, file=file_of("orders/a.json", version=None)),
    "ignored": IGNORED,
    "ignored, expires": replace(IGNORED, expires_at=7),
}


def state_and_expiry(world: World) -> tuple[Any, Any]:
    key = arrival_key(FILE.bucket, FILE.key, FILE.version)
    item = world.dynamodb.get_item(TableName="ledger", Key=key.item(), ConsistentRead=True)["Item"]
    assert None not in item.values()
    return item.get("state"), item.get(EXPIRY)


@pytest.mark.parametrize("row", ROWS.values(), ids=ROWS)
def test_a_row_is_read_as_it_was_written(world: World, row: ArrivalRow) -> None:
    arrivals = world.ledger.arrivals
    assert arrivals.put(row) == row
    assert arrivals.get(row.file) == row
    assert arrivals.get_many([file_of("orders/unknown.json"), row.file]) == [None, row]
    assert arrivals.versions(row.file.bucket, row.file.key) == [row]


@pytest.mark.parametrize("first", [OWNED, IGNORED])
def test_the_first_row_of_an_arrival_stays(world: World, first: ArrivalRow) -> None:
    world.ledger.arrivals.put(first)
    assert world.ledger.arrivals.put(replace(OWNED, manifest="manifest-2", reason="later")) == first
    assert world.ledger.arrivals.get(FILE) == first


@pytest.mark.parametrize("expires_at", [None, 9])
@pytest.mark.parametrize("before", [OWNED, IGNORED, replace(OWNED, expires_at=7)])
def test_an_adopted_arrival_has_everything_of_its_new_owner(
    world: World, before: ArrivalRow, expires_at: int | None
) -> None:
    world.ledger.arrivals.put(before)
    adopted = ArrivalRow(
        replace(FILE, arrived_at="2026-11-21T00:00:00Z"),
        "manifest-2",
        replace(PARTITION, hour=10),
        Lane.BATCH,
        "adopted",
        "2026-11-21T00:00:01Z",
        expires_at,
    )
    assert world.ledger.arrivals.adopt(before, adopted) == adopted
    assert world.ledger.arrivals.get(FILE) == adopted
    assert state_and_expiry(world) == (None, expires_at)


@pytest.mark.parametrize("read", [OWNED, IGNORED])
def test_an_arrival_that_has_got_another_owner_since_is_not_adopted(world: World, read: ArrivalRow) -> None:
    # Given an arrival that another process has adopted after it was read
    world.ledger.arrivals.put(read)
    others = replace(OWNED, manifest="manifest-2")
    world.ledger.arrivals.adopt(read, others)
    # When, Then
    assert world.ledger.arrivals.adopt(read, replace(OWNED, manifest="manifest-3")) == others
    assert world.ledger.arrivals.get(FILE) == others


def test_a_row_that_was_deleted_manually_cannot_be_adopted(world: World) -> None:
    with pytest.raises(OwnershipError):
        world.ledger.arrivals.adopt(OWNED, replace(OWNED, manifest="manifest-2"))
    assert world.ledger.arrivals.get(FILE) is None
