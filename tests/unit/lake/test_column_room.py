"""How many columns fit into a dataset's item: by number and by bytes, to the last one."""

import pytest

from lake.ledger.datasets import MAX_COLUMN_BYTES, MAX_NAME_BYTES, divide_by_room, is_full

OVERHEAD = 4
NEEDED = MAX_NAME_BYTES + OVERHEAD
"""Free bytes with which the longest name still fits."""
NO_LIMIT = 1_000_000


def columns_that_leave(free: int) -> list[str]:
    """Distinct names that take all bytes of the item but ``free``."""
    taken, size = MAX_COLUMN_BYTES - free, 100
    whole = taken // size - 1
    sizes = [size] * whole + [taken - whole * size]
    return [f"{number:0{stored - OVERHEAD}d}" for number, stored in enumerate(sizes)]


@pytest.mark.parametrize(("free", "full"), [(NEEDED + 1, False), (NEEDED, False), (NEEDED - 1, True), (0, True)])
def test_a_dataset_is_full_when_the_longest_name_does_not_fit(free: int, full: bool) -> None:
    columns = columns_that_leave(free)
    assert is_full(columns, NO_LIMIT) == full
    assert divide_by_room(columns, ["a"], NO_LIMIT) == (((), ("a",)) if full else (("a",), ()))


@pytest.mark.parametrize(("limit", "full"), [(4, False), (3, True), (2, True)])
def test_a_dataset_is_full_when_it_has_as_many_columns_as_it_may_have(limit: int, full: bool) -> None:
    columns = ["a", "b", "c"]
    assert is_full(columns, limit) == full
    assert divide_by_room(columns, ["d"], limit) == (((), ("d",)) if full else (("d",), ()))


def test_names_take_their_room_in_order_and_known_ones_none() -> None:
    columns = columns_that_leave(NEEDED + 10)
    # The first name leaves too little for the longest one, though the second would fit.
    assert divide_by_room(columns, [columns[0], "seven_b", "a", "seven_b"], NO_LIMIT) == (("seven_b",), ("a",))
    assert divide_by_room(["a"], ["b", "a", "c", "d"], 3) == (("b", "c"), ("d",))
