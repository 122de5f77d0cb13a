"""docs/analysts.md: its queries run in DuckDB on a lake that the product has converted."""

from pathlib import Path
from typing import Any

import duckdb

from tests.unit.docs.analysts_lake import DAY, EXPECTED, answers, convert_orders, python_blocks


def test_the_queries_run_in_duckdb(tmp_path: Path) -> None:
    converted = convert_orders(tmp_path)
    with duckdb.connect() as database:

        def run(statement: str) -> list[tuple[Any, ...]]:
            return database.execute(statement).fetchall()

        assert answers("DuckDB", converted, run) == EXPECTED


def test_on_a_clean_dataset_no_view_fails(tmp_path: Path) -> None:
    converted = convert_orders(tmp_path, clean=True)
    with duckdb.connect() as database:
        found = answers("DuckDB", converted, lambda statement: database.execute(statement).fetchall())
    assert found["Why lines are in the quarantine"] == found["The rejected lines"] == []
    assert found["Rows of each hour"] == EXPECTED["Rows of each hour"]


def test_polars_and_pyarrow_see_columns_that_come_later(tmp_path: Path) -> None:
    # Given an hour with a column that the hour before it lacks
    converted = convert_orders(tmp_path, clean=True)
    for library in ("Polars", "pyarrow"):
        names: dict[str, Any] = {}
        # When
        exec(python_blocks(library, converted), names)
        orders = names["orders"]
        rows = orders.collect().to_dicts() if library == "Polars" else orders.to_table().to_pylist()
        # Then
        values = sorted((row["order__id"], row["coupon"], row["date"], row["hour"]) for row in rows)
        assert values == [("1", None, DAY, 8), ("2", None, DAY, 8), ("3", "x", DAY, 9)]
