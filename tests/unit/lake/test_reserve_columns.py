"""The columns of a dataset are reserved before the commit point, as long as its row has room for them."""

from lake.ledger.column_room import MAX_COLUMN_BYTES, divide_by_room, is_full
from tests.unit.lake.world import World


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


def test_the_names_of_a_dataset_fit_into_one_item_whatever_their_number() -> None:
    # Given: more long names than an item of the ledger can hold
    names = [f"{number:0200}" for number in range(3000)]
    # When
    fitting, refused = divide_by_room((), names, 10_000)
    # Then
    assert (*fitting, *refused) == tuple(names)
    assert MAX_COLUMN_BYTES - 1000 < sum(len(name) + 4 for name in fitting) <= MAX_COLUMN_BYTES
    assert is_full(fitting, 10_000)
    assert divide_by_room(fitting, ["a"], 10_000) == ((), ("a",))
