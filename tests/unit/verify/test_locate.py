"""The second look at rows that differ: it finds doubled rows, with bounded memory."""

import tracemalloc
from itertools import repeat

from lake.manifest import ObjectVersion
from verify.elements import Line
from verify.manifest_check import locate
from verify.rows import BUCKETS, Pairs, row_digest

FILE = ObjectVersion("input", "a.json", "e", 1, "", "v")
URI = "s3://lake/a.parquet"


def row(number: int) -> Pairs:
    return [("id", str(number))]


def buckets(*rows: Pairs) -> list[int]:
    return [row_digest(pairs) % BUCKETS for pairs in rows]


def inputs(rows: list[Pairs]) -> list[tuple[ObjectVersion, Line, Pairs]]:
    return [(FILE, Line(number, 0, 0, b""), pairs) for number, pairs in enumerate(rows, 1)]


def test_equal_rows_take_the_memory_of_one() -> None:
    # Given one row 20,000 times, and one that the input does not have
    equal = repeat((FILE, Line(1, 0, 0, b""), [("a", "x")]), 20_000)
    lake = ((URI, pairs) for pairs in ([("a", "x")] if number else [("a", "y")] for number in range(20_001)))
    tracemalloc.start()
    # When
    (difference,) = locate(equal, lake, buckets([("a", "x")], [("a", "y")]), 20_001)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    # Then
    assert difference.uri == URI
    assert peak < 500_000


def test_a_row_that_the_lake_has_twice_is_found() -> None:
    rows = [row(1), row(2)]
    (difference,) = locate(inputs(rows), [(URI, pairs) for pairs in [*rows, rows[0]]], buckets(row(1)), 3)
    assert "or has it twice" in difference.problem
    (difference,) = locate(inputs([*rows, rows[0]]), [(URI, pairs) for pairs in rows], buckets(row(1)), 2)
    assert (difference.line, difference.problem) == (3, "the lake does not have this row")
