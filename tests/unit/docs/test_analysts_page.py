"""docs/analysts.md: its queries run in DuckDB on a lake that the product has converted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import duckdb

from tests.unit.docs.analysts_lake import EXPECTED, answers, convert_orders

if TYPE_CHECKING:
    from pathlib import Path


def test_the_queries_run_in_duckdb(tmp_path: Path) -> None:
    converted = convert_orders(tmp_path)
    with duckdb.connect() as database:

        def run(statement: str) -> list[tuple[Any, ...]]:
            return database.execute(statement).fetchall()

        assert answers("DuckDB", converted, run) == EXPECTED
