"""Types that are proposed for text: what each accepts, and that the casts of the views agree with it."""

from collections import Counter
from collections.abc import Iterator
from decimal import Decimal
from typing import Any
from unittest.mock import Mock

import duckdb
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from cli.catalog import column_types
from cli.catalog.column_types import ColumnType, Dialect, TypeKind, cast_of, propose

NUMBERS = st.one_of(
    st.integers().map(str),
    st.integers(-(2**65), 2**65).map(str),
    st.decimals(allow_nan=False, allow_infinity=False).map(str),
    st.floats().map(repr),
    st.from_regex(r"-?[0-9]{1,40}([.][0-9]{0,20})?([eE][+-]?[0-9]{1,4})?\n?", fullmatch=True),
)
TIMES = st.one_of(
    st.datetimes().map(str),
    st.datetimes(timezones=st.timezones()).map(lambda time: time.isoformat()),
    st.dates().map(str),
    st.from_regex(
        r"[0-2][0-9]{3}-[01][0-9]-[0-3][0-9]([T ][0-2][0-9](:[0-6][0-9]){2}([.][0-9]{1,9})?(Z|[+-][01][0-9]:00)?)?\n?",
        fullmatch=True,
    ),
)
OTHERS = st.one_of(
    st.sampled_from(
        ["", "true", "false", "TRUE", " 1", "1 ", "+1", "00", "-0", "NaN", "inf", "null", "[", "{}", '{"a":1}']
    ),
    st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=6),
)
TEXTS = st.one_of(NUMBERS, TIMES, OTHERS)
TYPES = [
    *(ColumnType(kind) for kind in TypeKind),
    *(ColumnType(kind, 3) for kind in (TypeKind.DECIMAL, TypeKind.TIMESTAMP, TypeKind.INSTANT)),
    ColumnType(TypeKind.INSTANT, 6),
    ColumnType(TypeKind.DECIMAL, 18),
]


@pytest.fixture(scope="module")
def database() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'America/New_York'")
        yield connection


@pytest.mark.parametrize(
    ("values", "name"),
    [
        (["1", "-20", "0"], "BIGINT"),
        (["1e3", "0.1", "0.30000000000000004"], "DOUBLE"),
        (["12.50", "3.99", "7"], "DECIMAL(38, 2)"),
        (["0.12345678901234567", "0.123456789012345678"], "DECIMAL(38, 18)"),
        (["9223372036854775808", "1"], "DECIMAL(38, 0)"),
        (["true", "false"], "BOOLEAN"),
        (["0123", "0456"], None),
        (["2026-11-20"], "DATE"),
        (["2026-11-20T08:00:00", "2026-11-20 08:00:00.5"], "TIMESTAMP"),
        (["2026-11-20T08:00:00Z", "2026-11-20T08:00:00.123+01:00"], "TIMESTAMP"),
        (['{"a": 1}', "[]"], "JSON"),
        ([], None),
    ],
)
def test_the_type_that_accepts_most_is_proposed(values: list[str], name: str | None) -> None:
    proposed = propose(Counter(values)).type
    assert (proposed.name if proposed else None) == name


def test_what_the_type_refuses_is_counted_and_shown() -> None:
    # Given: 95 numbers, and five texts, two of which are equal
    values = Counter({str(number): 1 for number in range(95)} | {"n/a": 2, "": 1, "1,5": 1, "x": 1})
    # When, Then
    proposal = propose(values)
    assert (proposal.type, proposal.values, proposal.refused) == (ColumnType(TypeKind.BIGINT), 100, 5)
    assert proposal.examples == ("n/a", "", "1,5")


def test_a_type_that_refuses_more_than_a_tenth_is_not_proposed() -> None:
    assert propose(Counter({"1": 89, "x": 11})).type is None
    assert propose(Counter({"1": 90, "x": 10})).type == ColumnType(TypeKind.BIGINT)


def test_no_type_is_tried_after_one_that_accepts_all_values(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(column_types, "_has_significant_digits", Mock(side_effect=AssertionError("of a DECIMAL")))
    assert propose({"1": 1}).type == ColumnType(TypeKind.BIGINT)


@settings(max_examples=60)
@given(values=st.lists(TEXTS, min_size=10, max_size=40))
@example(values=['["\\ud83d"]', '{"\\ude00":1}', '["\\ud83d\\ude00"]', f"[{'9' * 5000}]"])
def test_the_casts_of_duckdb_accept_what_the_types_accept(
    database: duckdb.DuckDBPyConnection, values: list[str]
) -> None:
    casts = ", ".join(f"CAST({cast_of('a', kind, Dialect.DUCKDB)} AS VARCHAR)" for kind in TYPES)
    query = f"SELECT a, {casts} FROM (SELECT unnest(?::VARCHAR[]) AS a)"
    rows: list[tuple[Any, ...]] = database.execute(query, [values]).fetchall()
    assert [text for text, *_ in rows] == values
    for text, *cast in rows:
        for kind, value in zip(TYPES, cast, strict=True):
            assert (value is not None) == kind.accepts(text), (kind, text)
            if value is not None and kind.kind is TypeKind.BIGINT:
                assert value == text
            if value is not None and kind.kind is TypeKind.DECIMAL:
                assert Decimal(value) == Decimal(text)


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        (ColumnType(TypeKind.INSTANT, 3), "2026-11-20T01:30:00.250+02:00", "2026-11-19 23:30:00.25"),
        (ColumnType(TypeKind.TIMESTAMP), "2026-11-20T01:30:00", "2026-11-20 01:30:00"),
    ],
)
def test_values_of_the_casts(database: duckdb.DuckDBPyConnection, kind: ColumnType, text: str, value: str) -> None:
    cast = cast_of("a", kind, Dialect.DUCKDB)
    (found,) = database.execute(f"SELECT CAST({cast} AS VARCHAR) FROM (SELECT ? AS a)", [text]).fetchall()
    assert found == (value,)


@pytest.mark.parametrize("text", [":00+" * 250_000 + "\n", "1" * 1_000_000, "2026-11-20T" * 100_000, '{"a":' * 200_000])
def test_a_large_value_takes_no_longer_than_a_small_one(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    # Given: 1 MB on which a backtracking pattern would take minutes
    for name in ("_SECOND", "_PLAIN_NUMBER"):
        monkeypatch.setattr(column_types, name, Mock(fullmatch=Mock(side_effect=AssertionError("a large text"))))
    # When, Then
    assert propose({text: 1}).type is None
