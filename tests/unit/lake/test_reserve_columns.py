"""The columns of a dataset are reserved before the commit point, as long as its row has room for them."""

from datetime import date, timedelta

from lake.ledger.datasets import ADDED_COLUMNS, GROWTH, field_id, is_full
from tests.unit.lake.world import World

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
    # When: a week later one file has 1,000 other ones
    later = date(2026, 11, 1) + GROWTH
    row = datasets.get("orders")
    assert row is not None
    assert row.column_limit(1000, later) == 600
    refused = datasets.reserve_columns("orders", names("hostile", 1000), 1000, later)
    # Then: the others have to wait for another day, and honest ones have room then
    assert len(refused) == 900
    assert datasets.reserve_columns("orders", names("honest", 3), 1000, later) == names("honest", 3)
    assert datasets.reserve_columns("orders", names("honest", 3), 1000, later + timedelta(days=1)) == ()
    assert len(columns(world)) == 603
    # And what is committed always has room
    assert datasets.reserve_columns("orders", names("committed", 200), 1000) == ()


def unnumbered(world: World) -> set[str]:
    row = world.ledger.datasets.get("orders")
    return set() if row is None else set(row.unnumbered)


def test_of_columns_with_one_field_id_the_first_has_it(world: World) -> None:
    # Given
    first, second = WITH_ONE_FIELD_ID
    assert field_id(first) == field_id(second)
    assert len({*map(field_id, ADDED_COLUMNS)}) == len(ADDED_COLUMNS)
    datasets = world.ledger.datasets
    # When: they come one after the other
    datasets.reserve_columns("orders", [first, "a"], 10)
    assert unnumbered(world) == set()
    datasets.reserve_columns("orders", ["b", second], 10)
    # Then
    assert unnumbered(world) == {second}
    # And the first keeps it when it is dropped and comes again
    assert datasets.drop_columns("orders", columns(world), [first])
    datasets.reserve_columns("orders", [first], 10)
    assert unnumbered(world) == {second}


def test_of_columns_with_one_field_id_that_come_together_one_has_it(world: World) -> None:
    world.ledger.datasets.reserve_columns("orders", WITH_ONE_FIELD_ID, 10)
    assert unnumbered(world) == {WITH_ONE_FIELD_ID[1]}


def names(prefix: str, number: int) -> tuple[str, ...]:
    return tuple(f"{prefix}_{position:04}" for position in range(number))
